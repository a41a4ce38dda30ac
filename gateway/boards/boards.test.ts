import { expect, test } from "vitest";

import type { BoardUpdate } from "../../shared/bus/board-messages.ts";
import type { Epoch, Millis, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { type BoardEffect, GatewayBoards, type BoardRequest } from "./boards.ts";

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
const shown = (ranking: [string, number, string?][], change: object = {}): BoardUpdate => ({
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
const behind: BoardUpdate = { kind: "behind", room: ROOM, role: "everyone", window: "hour" };
const boards = (tenantBoardBytesBurst = 100_000, tenantBoardBytesPerSecond = 10) =>
  new GatewayBoards({ boardsPerConnectionMax: 2, boardWatchMs: 30_000, tenantBoardBytesBurst, tenantBoardBytesPerSecond });

/** Summary of each effect: kind, recipient, content. */
function summaryOf(effects: readonly BoardEffect[]): string[] {
  return effects.map((effect) => {
    switch (effect.kind) {
      case "follow":
      case "unfollow":
      case "delayed":
        return effect.kind;
      case "watch":
        return `watch ${effect.watch.isNew ? "new" : "still"}`;
      case "publish-name":
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

test("[GBO1] the first watch requests the board; the answer is published once, and each watcher receives its own rank", () => {
  const watched = boards();
  expect(summaryOf(watched.receiveRequest(of(1), at(0)))).toEqual([`listen 1 ${TOPIC}`, "follow", "watch new"]);
  expect(summaryOf(watched.receiveRequest(of(2), at(1)))).toEqual([`listen 2 ${TOPIC}`]);
  expect(
    summaryOf(
      watched.receiveUpdate(
        shown([
          ["user-2", 9],
          ["ann", 4],
        ]),
        at(10),
      ),
    ),
  ).toEqual([`publish ${TOPIC}: live user-2=9 ann=4`, "send 1: rank 0 score 0", "send 2: rank 1 score 9"]);
});

test("[GBO2] a later watcher gets the known board at once, without a new request", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveUpdate(shown([["user-2", 9]]), at(10));
  expect(summaryOf(watched.receiveRequest(of(2), at(5)))).toEqual([`listen 2 ${TOPIC}`, "send 2: live user-2=9", "send 2: rank 1 score 9"]);
  expect(summaryOf(watched.receiveUpdate(shown([["user-2", 9]]), at(10)))).toEqual([]);
});

test("[GBO3] a list is published only when it changed; own ranks go to watchers whose rank or score changed", () => {
  const watched = boards();
  for (const connection of [1, 2, 3]) watched.receiveRequest(of(connection), at(0));
  const first: [string, number][] = [
    ...Array.from({ length: 10 }, (_, index): [string, number] => [`top-${index}`, 100 - index]),
    ["user-1", 5],
    ["user-2", 4],
  ];
  watched.receiveUpdate(shown(first), at(10));
  expect(summaryOf(watched.receiveUpdate(shown([...first.slice(0, 10), ["user-2", 6], ["user-1", 5]], { seq: 6 }), at(10)))).toEqual([
    "send 1: rank 12 score 5",
    "send 2: rank 11 score 6",
  ]);
  expect(
    summaryOf(watched.receiveUpdate(shown([["top-0", 101], ...first.slice(1, 10), ["user-2", 6], ["user-1", 5]], at(10)), at(10)))[0],
  ).toContain("publish");
});

test("[GBO19] a new member below the shown places is published, because watchers see the number of members", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  const ranking = Array.from({ length: 11 }, (_, index): [string, number] => [`top-${index}`, 100 - index]);
  watched.receiveUpdate(shown(ranking), at(10));
  const [published] = watched.receiveUpdate(shown([...ranking, ["new", 1]], { seq: 6 }), at(20));
  expect(published).toMatchObject({ kind: "publish", topic: TOPIC, frame: { members: 12 } });
  expect(watched.receiveUpdate(shown([...ranking, ["new", 2]], { seq: 7 }), at(30))).toEqual([]);
});

test("[GBO4] lists differ by number of entries, role and window, and watchers with a similar number share one list", () => {
  const watched = boards();
  watched.receiveRequest(of(1, { shown: 3 }), at(0));
  watched.receiveRequest(of(2, { shown: 40 }), at(0));
  expect(summaryOf(watched.receiveRequest(of(3, { window: "all" }), at(0)))).toEqual(["listen 3 board 7 everyone all 10", "watch new"]);
  const many = Array.from({ length: 60 }, (_, index): [string, number] => [`top-${index}`, 100 - index]);
  const published = watched.receiveUpdate(shown(many, { shown: 50 }), at(10)).filter((effect) => effect.kind === "publish");
  expect(published.map(({ topic, frame }) => [topic, frame.type === "board" && frame.ranking.length])).toEqual([
    [TOPIC, 10],
    ["board 7 everyone hour 100", 50],
  ]);
});

test("[GBO5] a new number of entries replaces the first; 0 ends the watch, and the last watcher closes the board", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveUpdate(shown([["ann", 1]]), at(10));
  expect(summaryOf(watched.receiveRequest(of(1, { shown: 100 }), at(1))).slice(0, 2)).toEqual([
    `unlisten 1 ${TOPIC}`,
    "listen 1 board 7 everyone hour 100",
  ]);
  expect(summaryOf(watched.receiveRequest(of(1, { shown: 0 }), at(2)))).toEqual(["unlisten 1 board 7 everyone hour 100", "unfollow"]);
  expect(watched.size).toEqual({ boards: 0, watchers: 0 });
});

test("[GBO6] a connection that leaves the room or closes is forgotten", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveRequest(of(1, { room: "acme.other" as RoomKey, channel: 8 }), at(0));
  expect(summaryOf(watched.receiveLeft(1 as ConnectionId, ROOM))).toEqual([`unlisten 1 ${TOPIC}`, "unfollow"]);
  expect(summaryOf(watched.receiveGone(1 as ConnectionId))).toEqual(["unlisten 1 board 8 everyone hour 10", "unfollow"]);
  expect(watched.receiveUpdate(shown([["ann", 1]], at(10)), at(10))).toEqual([]);
});

test("[GBO7] a board above the limit, or one that does not exist, is unavailable, and no update follows", () => {
  const watched = boards();
  for (const window of ["hour", "day"] as const) watched.receiveRequest(of(1, { window }), at(0));
  expect(summaryOf(watched.receiveRequest(of(1, { window: "all" }), at(0)))).toEqual(["send 1: unavailable"]);
  expect(summaryOf(watched.receiveUpdate({ ...behind, kind: "unavailable" }, at(10)))).toEqual([
    `publish ${TOPIC}: unavailable`,
    `unlisten 1 ${TOPIC}`,
  ]);
  expect(watched.size).toEqual({ boards: 1, watchers: 1 });
});

test("[GBO8] a board is behind while its leaderboard does not answer, reports that it is behind, or is lost", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  expect(summaryOf(watched.receiveTick(1, at(1_999)))).toEqual([]);
  expect(summaryOf(watched.receiveTick(1, at(2_000)))).toEqual([`publish ${TOPIC}: behind`, "watch new"]);
  expect(summaryOf(watched.receiveUpdate(shown([["ann", 1]], at(10)), at(10)))[0]).toBe(`publish ${TOPIC}: live ann=1`);
  expect(summaryOf(watched.receiveUpdate(behind, at(10)))).toEqual([`publish ${TOPIC}: behind ann=1`]);
  expect(summaryOf(watched.receiveUpdate(behind, at(10)))).toEqual([]);
  expect(summaryOf(watched.receiveUpdate(shown([["ann", 1]], at(10)), at(10)))[0]).toBe(`publish ${TOPIC}: live ann=1`);
  expect(summaryOf(watched.receiveTick(0, at(3_000)))).toEqual([`publish ${TOPIC}: behind ann=1`]);
  expect(summaryOf(watched.receiveTick(1, at(4_000)))).toEqual(["watch new"]);
});

test('[GBO21] a leaderboard that answers "behind" is asked again at the renewal interval, and a silent one every 2 s', () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveUpdate(behind, at(10));
  expect(summaryOf(watched.receiveTick(1, at(9_999)))).toEqual([]);
  expect(summaryOf(watched.receiveTick(1, at(10_000)))).toEqual(["watch new"]);
  expect(summaryOf(watched.receiveTick(1, at(12_000))), "the last request has no answer").toEqual(["watch new"]);
  watched.receiveUpdate(behind, at(12_010));
  expect(summaryOf(watched.receiveTick(0, at(13_000))), "the leaderboard is lost").toEqual([]);
  expect(summaryOf(watched.receiveTick(0, at(14_000)))).toEqual(["watch new"]);
});

test("[GBO9] a watch is renewed in time, and requested again when NATS returns", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  watched.receiveUpdate(shown([]), at(10));
  expect(summaryOf(watched.receiveTick(1, at(9_999)))).toEqual([]);
  expect(summaryOf(watched.receiveTick(1, at(10_000)))).toEqual(["watch still"]);
  expect(summaryOf(watched.receiveBackboneFound(at(11_000)))).toEqual(["watch new"]);
});

test("[GBO20] the renewal of a watch names the last list that arrived, so that a lost one is sent again", () => {
  const watched = boards();
  expect(watched.receiveRequest(of(1), at(0)).at(-1)).toEqual({
    kind: "watch",
    watch: { room: ROOM, role: "everyone", window: "hour", isNew: true },
  });
  watched.receiveUpdate(shown([["ann", 4]], { checksum: 7 }), at(10));
  expect(watched.receiveTick(1, at(10_000))).toMatchObject([{ watch: { isNew: false, checksum: 7 } }]);
});

test("[GBO10] the name of a user whom a board shows without a name, or with an old one, is published once", () => {
  const watched = boards();
  watched.receiveRequest(of(1, { name: "Ann" }), at(0));
  expect(
    summaryOf(
      watched.receiveUpdate(
        shown([
          ["user-1", 1],
          ["bob", 1],
        ]),
        at(10),
      ),
    ),
  ).toContain("name user-1 Ann");
  expect(
    summaryOf(
      watched.receiveUpdate(
        shown([
          ["user-1", 2],
          ["bob", 1],
        ]),
        at(10),
      ),
    ).some((summary) => summary.startsWith("name")),
  ).toBe(false);
});

test("[GBO14] a name that equals the user id replaces an older name, and is not published when none is shown", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  expect(summaryOf(watched.receiveUpdate(shown([["user-1", 1]]), at(10))).some((summary) => summary.startsWith("name", at(10)))).toBe(
    false,
  );
  expect(summaryOf(watched.receiveUpdate(shown([["user-1", 2, "Ann"]]), at(10)))).toContain("name user-1 user-1");
});

test("[GBO11] a score above the range of a frame is sent as the highest score that a frame holds", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  expect(summaryOf(watched.receiveUpdate(shown([["ann", 2 ** 53]], at(10)), at(10)))[0]).toContain(`ann=${Number.MAX_SAFE_INTEGER}`);
});

test("[GBO17] the places of watchers outside the ranking are asked for, once for each, and sent when the leaderboard answers", () => {
  const watched = boards();
  watched.receiveRequest(of(1), at(0));
  const ranking: [string, number][] = [["ann", 9]];
  const first = watched.receiveUpdate(shown(ranking, { members: 300 }), at(1));
  expect(summaryOf(first), "no rank is sent before it is known").toEqual([`publish ${TOPIC}: live ann=9`, "watch still"]);
  expect(first.at(-1)).toMatchObject({ watch: { sought: ["user-1"], isNew: false } });
  const own = (rank: number): object => ({ members: 300, own: [["user-1", rank, 2]] });
  expect(summaryOf(watched.receiveUpdate(shown(ranking, own(201)), at(2)))).toEqual(["send 1: rank 201 score 2"]);
  expect(summaryOf(watched.receiveUpdate(shown(ranking, own(202)), at(3)))).toEqual(["send 1: rank 202 score 2"]);
  const later = watched.receiveRequest(of(2), at(4));
  expect(later.at(-1)).toMatchObject({ kind: "watch", watch: { sought: ["user-1", "user-2"] } });
  expect(watched.receiveTick(1, at(20_000)).at(-1), "repeated while it is watched").toMatchObject({
    watch: { sought: ["user-1", "user-2"] },
  });
  const noPoints = shown(ranking, {
    members: 300,
    own: [
      ["user-1", 202, 2],
      ["user-2", 0, 0],
    ],
  });
  expect(summaryOf(watched.receiveUpdate(noPoints, at(5)))).toEqual(["send 2: rank 0 score 0"]);
});

test("[GBO22] boards of a tenant above its bytes times watchers are sent later, with the newest list and to new watchers too", () => {
  const watched = boards(100, 50);
  const stranger = { room: "other.notes" as RoomKey, channel: 8 };
  for (const connection of [1, 2]) watched.receiveRequest(of(connection), at(0));
  watched.receiveRequest(of(9, stranger), at(0));
  const list = (score: number) => shown([["a-user-with-a-long-name", score, "A long name"]]);
  expect(summaryOf(watched.receiveUpdate(list(1), at(0)))[0]).toContain("publish");
  expect(summaryOf(watched.receiveUpdate(list(2), at(10)))).toEqual(["delayed"]);
  expect(summaryOf(watched.receiveUpdate(list(3), at(20)))).toEqual(["delayed"]);
  expect(summaryOf(watched.receiveUpdate({ ...list(1), room: stranger.room }, at(30)))[0], "another tenant").toContain("publish");
  expect(summaryOf(watched.receiveRequest(of(3), at(40)))).toEqual([`listen 3 ${TOPIC}`, "delayed"]);
  expect(summaryOf(watched.receiveTick(1, at(50)))).toEqual([]);
  const later = summaryOf(watched.receiveTick(1, at(9_000)));
  expect(later.slice(0, 2)).toEqual([`publish ${TOPIC}: live a-user-with-a-long-name=3`, "send 3: rank 0 score 0"]);
});
