import { expect, test } from "vitest";

import type { BoardNews } from "../../shared/bus/board-messages.ts";
import type { Epoch, Millis, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import { type BoardEffect, Boards, type BoardRequest } from "./boards.ts";
import type { ConnectionId } from "../ports.ts";

const ROOM = "acme.notes" as RoomKey;
const at = (ms: number) => ms as Millis;
const of = (connection: number, change: Partial<BoardRequest> = {}): BoardRequest => {
  const user = `user-${connection}`;
  return {
    connection: connection as ConnectionId,
    user: user as UserId,
    name: user,
    room: ROOM,
    channel: 7,
    role: "everyone",
    window: "hour",
    shown: 10,
    ...change,
  };
};
const shown = (ranking: [string, number, string?][], change: object = {}): BoardNews => ({
  kind: "shown",
  room: ROOM,
  role: "everyone",
  window: "hour",
  windowId: "2026-07-01T12",
  epoch: 1 as Epoch,
  seq: 5 as Seq,
  members: ranking.length,
  shown: 100,
  checksum: 1,
  ranking: ranking.map(([user, score, name]) => [user, score, name ?? ""]),
  ...change,
});
const behind: BoardNews = { kind: "behind", room: ROOM, role: "everyone", window: "hour" };
const boards = () => new Boards({ boardsPerConnectionMax: 2, boardWatchMs: 30_000 });

/** In short: what happens, to whom, and what it says. */
function told(effects: readonly BoardEffect[]): string[] {
  return effects.map((effect) => {
    switch (effect.kind) {
      case "follow":
      case "unfollow":
        return effect.kind;
      case "watch":
        return `watch ${effect.watch.isNew ? "new" : "still"}`;
      case "tell-name":
        return `name ${effect.name.user} ${effect.name.name}`;
      case "listen":
      case "unlisten":
        return `${effect.kind} ${effect.connection} ${effect.topic}`;
      case "publish":
      case "send": {
        const { frame } = effect;
        const what =
          frame.type === "board"
            ? `${frame.state} ${frame.ranking.map(({ user, score }) => `${user}=${score}`).join(" ")}`
            : frame.type === "own-rank"
              ? `rank ${frame.rank} score ${frame.score}`
              : frame.type;
        return `${effect.kind} ${effect.kind === "send" ? effect.to : effect.topic}: ${what.trim()}`;
      }
    }
  });
}

const TOPIC = "board 7 everyone hour 10";

test("[GBO1] the first who looks makes the gateway ask; the answer is published once, and each is told its own rank", () => {
  const watched = boards();
  expect(told(watched.receiveRequest(of(1), at(0)))).toEqual([`listen 1 ${TOPIC}`, "follow", "watch new"]);
  expect(told(watched.receiveRequest(of(2), at(1)))).toEqual([`listen 2 ${TOPIC}`]);
  expect(
    told(
      watched.receiveNews(
        shown([
          ["user-2", 9],
          ["ann", 4],
        ]),
      ),
    ),
  ).toEqual([`publish ${TOPIC}: live user-2=9 ann=4`, "send 1: rank 0 score 0", "send 2: rank 1 score 9"]);
});

test("[GBO2] who comes later gets what is known at once, without anybody being asked", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveNews(shown([["user-2", 9]]));
  expect(told(watched.receiveRequest(of(2), at(5)))).toEqual([`listen 2 ${TOPIC}`, "send 2: live user-2=9", "send 2: rank 1 score 9"]);
  expect(told(watched.receiveNews(shown([["user-2", 9]])))).toEqual([]);
});

test("[GBO3] a list is published when it changed and only then; own ranks go to those whose rank or score changed", () => {
  const watched = boards();
  for (const connection of [1, 2, 3]) watched.receiveRequest(of(connection), at(0));
  const first: [string, number][] = [
    ...Array.from({ length: 10 }, (_, index): [string, number] => [`top-${index}`, 100 - index]),
    ["user-1", 5],
    ["user-2", 4],
  ];
  watched.receiveNews(shown(first));
  expect(told(watched.receiveNews(shown([...first.slice(0, 10), ["user-2", 6], ["user-1", 5]], { seq: 6 })))).toEqual([
    "send 1: rank 12 score 5",
    "send 2: rank 11 score 6",
  ]);
  expect(told(watched.receiveNews(shown([["top-0", 101], ...first.slice(1, 10), ["user-2", 6], ["user-1", 5]])))[0]).toContain("publish");
});

test("[GBO4] lists of another length, role or window are told apart, and one of few lengths serves all who ask for about as much", () => {
  const watched = boards();
  watched.receiveRequest(of(1, { shown: 3 }), at(0));
  watched.receiveRequest(of(2, { shown: 40 }), at(0));
  expect(told(watched.receiveRequest(of(3, { window: "all" }), at(0)))).toEqual(["listen 3 board 7 everyone all 10", "watch new"]);
  const many = Array.from({ length: 60 }, (_, index): [string, number] => [`top-${index}`, 100 - index]);
  const published = watched.receiveNews(shown(many, { shown: 50 })).filter((effect) => effect.kind === "publish");
  expect(published.map(({ topic, frame }) => [topic, frame.type === "board" && frame.ranking.length])).toEqual([
    [TOPIC, 10],
    ["board 7 everyone hour 100", 50],
  ]);
});

test("[GBO5] asked again with another length it replaces the first; asked for none it ends, and the last one out closes the board", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveNews(shown([["ann", 1]]));
  expect(told(watched.receiveRequest(of(1, { shown: 100 }), at(1))).slice(0, 2)).toEqual([
    `unlisten 1 ${TOPIC}`,
    "listen 1 board 7 everyone hour 100",
  ]);
  expect(told(watched.receiveRequest(of(1, { shown: 0 }), at(2)))).toEqual(["unlisten 1 board 7 everyone hour 100", "unfollow"]);
  expect(watched.size).toEqual({ boards: 0, watchers: 0 });
});

test("[GBO6] who leaves the room or is gone is forgotten", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveRequest(of(1, { room: "acme.other" as RoomKey, channel: 8 }), at(0));
  expect(told(watched.receiveLeft(1 as ConnectionId, ROOM))).toEqual([`unlisten 1 ${TOPIC}`, "unfollow"]);
  expect(told(watched.receiveGone(1 as ConnectionId))).toEqual(["unlisten 1 board 8 everyone hour 10", "unfollow"]);
  expect(watched.receiveNews(shown([["ann", 1]]))).toEqual([]);
});

test("[GBO7] one board too many is not available, and one that is not kept neither; nothing follows", () => {
  const watched = boards();
  for (const window of ["hour", "day"] as const) watched.receiveRequest(of(1, { window }), at(0));
  expect(told(watched.receiveRequest(of(1, { window: "all" }), at(0)))).toEqual(["send 1: unavailable"]);
  expect(told(watched.receiveNews({ ...behind, kind: "unavailable" }))).toEqual([`publish ${TOPIC}: unavailable`, `unlisten 1 ${TOPIC}`]);
  expect(watched.size).toEqual({ boards: 1, watchers: 1 });
});

test("[GBO8] a leaderboard that does not answer, or says that it is behind, or is gone makes a board behind until it is told anew", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  expect(told(watched.receiveTick(1, at(1_999)))).toEqual([]);
  expect(told(watched.receiveTick(1, at(2_000)))).toEqual([`publish ${TOPIC}: behind`, "watch new"]);
  expect(told(watched.receiveNews(shown([["ann", 1]])))[0]).toBe(`publish ${TOPIC}: live ann=1`);
  expect(told(watched.receiveNews(behind))).toEqual([`publish ${TOPIC}: behind ann=1`]);
  expect(told(watched.receiveNews(behind))).toEqual([]);
  expect(told(watched.receiveNews(shown([["ann", 1]])))[0]).toBe(`publish ${TOPIC}: live ann=1`);
  expect(told(watched.receiveTick(0, at(3_000)))).toEqual([`publish ${TOPIC}: behind ann=1`]);
  expect(told(watched.receiveTick(1, at(4_000)))).toEqual(["watch new"]);
});

test("[GBO9] a board that is watched is asked for again in time, and anew when the line was lost", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveNews(shown([]));
  expect(told(watched.receiveTick(1, at(9_999)))).toEqual([]);
  expect(told(watched.receiveTick(1, at(10_000)))).toEqual(["watch still"]);
  expect(told(watched.receiveLineFound(at(11_000)))).toEqual(["watch new"]);
});

test("[GBO10] who is shown by no name, or an old one, is told of once", () => {
  const watched = boards();
  watched.receiveRequest(of(1, { name: "Ann" }), at(0));
  expect(
    told(
      watched.receiveNews(
        shown([
          ["user-1", 1],
          ["bob", 1],
        ]),
      ),
    ),
  ).toContain("name user-1 Ann");
  expect(
    told(
      watched.receiveNews(
        shown([
          ["user-1", 2],
          ["bob", 1],
        ]),
      ),
    ).some((line) => line.startsWith("name")),
  ).toBe(false);
});

test("[GBO14] a name that is the user's id takes the place of an older one, and is not told where none is shown", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  expect(told(watched.receiveNews(shown([["user-1", 1]]))).some((line) => line.startsWith("name"))).toBe(false);
  expect(told(watched.receiveNews(shown([["user-1", 2, "Ann"]])))).toContain("name user-1 user-1");
});

test("[GBO11] a score that a frame cannot hold is told as the highest that it can", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  expect(told(watched.receiveNews(shown([["ann", 2 ** 53]])))[0]).toContain(`ann=${Number.MAX_SAFE_INTEGER}`);
});
