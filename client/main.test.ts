import { expect, test } from "vitest";
import * as Y from "yjs";

import { leaderboardOf } from "./boards/main.ts";
import { CoroomProvider, RoomConnection } from "./main.ts";
import { broadcastsOf } from "./presence/room-broadcasts.ts";

test("[ROO32] an edit that is sent after destroy() throws, because nobody would receive it", () => {
  const room = new RoomConnection({ url: "ws://127.0.0.1:9", token: "t", room: "notes", connect: false });
  room.destroy();
  room.destroy();
  expect(() => room.send(new Uint8Array([1]))).toThrow("cannot send an edit after destroy()");
});

test("[ROO33] connect(), subscribe() and broadcasts throw after destroy(), because the room does nothing any more", () => {
  const options = { url: "ws://127.0.0.1:9", token: "t", room: "notes", connect: false };
  const [doc, other] = [new Y.Doc(), new Y.Doc()];
  for (const { room, destroy } of [
    ...[new RoomConnection(options)].map((room) => ({ room, destroy: () => room.destroy() })),
    ...[new CoroomProvider({ ...options, doc })].map((room) => ({ room, destroy: () => room.destroy() })),
    ...[new CoroomProvider({ ...options, doc: other })].map((room) => ({ room, destroy: () => other.destroy() })),
  ]) {
    const [boards, broadcasts] = [leaderboardOf(room), broadcastsOf(room)];
    destroy();
    expect(() => room.connect()).toThrow("cannot connect after destroy()");
    expect(() => boards.subscribe()).toThrow("cannot subscribe to a board after destroy()");
    expect(() => broadcasts.send("late")).toThrow("cannot send a broadcast after destroy()");
  }
  const late = new RoomConnection(options);
  late.destroy();
  expect(() => leaderboardOf(late).subscribe()).toThrow("cannot subscribe to a board after destroy()");
  expect(() => broadcastsOf(late).send("late")).toThrow("cannot send a broadcast after destroy()");
});
