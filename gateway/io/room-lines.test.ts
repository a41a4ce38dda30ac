import { expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import { endOfTurn } from "../../shared/io/end-of-turn.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { roomLines } from "./room-lines.ts";

const SUBJECTS = {
  heard: (room: RoomKey) => `out.${room}`,
  told: (room: RoomKey) => `in.${room}`,
  reply: (room: RoomKey) => `to.${room}`,
  replies: "to.*",
};
const room = (name: string) => `acme.${name}` as RoomKey;

test("[NAT19] rooms that are followed in one turn are subscribed to in one write at its end, and those left by then not at all", async () => {
  const writes: string[][] = [];
  let written: string[] = [];
  const say = (command: string): void => {
    if (written.push(command) === 1) queueMicrotask(() => writes.push(written.splice(0))); // As nats.js does.
  };
  const line = {
    subscribe: (subject: string) => (say(`sub ${subject}`), { unsubscribe: () => say(`unsub ${subject}`) }),
    flush: async () => say("ping"),
  };
  const { rooms } = roomLines(line as unknown as NatsConnection, SUBJECTS, { endOfTurn: endOfTurn() });
  const followed: Promise<void>[] = [];
  for (const name of ["one", "two", "left", "back"]) {
    followed.push(rooms.follow(room(name)));
    await Promise.resolve(); // uWebSockets.js runs microtasks after each client's message.
  }
  rooms.unfollow(room("left"));
  rooms.unfollow(room("back"));
  followed.push(rooms.follow(room("back")));
  expect(writes).toEqual([]);
  await Promise.all(followed);
  expect(writes).toEqual([["sub out.acme.one", "sub out.acme.two", "sub out.acme.back"], ["ping"]]);
  rooms.unfollow(room("one"));
  await Promise.resolve();
  expect(writes.at(-1)).toEqual(["unsub out.acme.one"]);
});
