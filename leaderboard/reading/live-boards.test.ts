import { expect, test } from "vitest";

import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { BoardContents } from "../boards/board.ts";
import { WINDOW_KINDS } from "../boards/windows.ts";
import { LiveBoards, type LiveEffect, type LiveInput } from "./live-boards.ts";
import type { Counted } from "./watched-boards.ts";

const ROOM = "acme.notes" as RoomKey;
const OPTIONS = {
  boardRoles: ["everyone" as const],
  boardWindows: WINDOW_KINDS,
  boardShownMax: 10,
  boardPushMs: 500,
  boardWatchMs: 5_000,
  boardWatchesMax: 9,
  boardWritesMax: 4,
};
const STATE: BoardContents = { applied: undefined, hot: [], members: 1, points: 1, bands: new Map(), isOrdered: false };

function begin(counted: Counted = "current") {
  const timeAt = (ms: number) => ({ now: ms as Millis, wallNow: ms as UnixMillis });
  const boards = new LiveBoards(OPTIONS, () => counted, timeAt(0));
  const feed = (input: LiveInput, ms: number): LiveEffect[] => boards.receiveInput(input, timeAt(ms));
  const watch = (window: string, ms: number): LiveEffect[] =>
    feed({ kind: "watch", watch: { room: ROOM, role: "everyone", window, isNew: true } }, ms);
  return { boards, feed, watch };
}
const reads = (effects: readonly LiveEffect[]) => effects.flatMap((effect) => (effect.kind === "read-board" ? [effect] : []));

const answerOf = (read: LiveEffect & { kind: "read-board" }): LiveInput => ({
  ...read,
  kind: "board-read",
  state: STATE,
  names: new Map(),
  own: [],
});

test("[LIVEB1] a room is counted before its boards are read, and is published again only after the interval", () => {
  const { boards, feed, watch } = begin();
  watch("day", 0);
  expect(boards.nextTickAt).toBe(5);
  const [count] = feed({ kind: "tick" }, 5);
  expect(count?.kind).toBe("count-room");
  if (count?.kind !== "count-room") return;
  const [read] = reads(feed({ kind: "room-counted", push: count.push }, 6));
  expect(read).toMatchObject({ room: ROOM, from: "redis" });
  feed({ kind: "changed", room: ROOM }, 7);
  expect(feed({ kind: "tick" }, 10)).toEqual([]); // The push is under way.
  const published = feed(answerOf(read!), 20);
  expect(published.map(({ kind }) => kind)).toEqual(["publish"]);
  expect(feed({ kind: "tick" }, 515)).toEqual([]);
  expect(feed({ kind: "tick" }, 520).map(({ kind }) => kind)).toEqual(["count-room"]);
});

test("[LIVEB2] a push of which one board cannot be read ends once the others are answered, and makes the boards behind", () => {
  const { feed, watch } = begin();
  watch("day", 0);
  watch("week", 0);
  const [count] = feed({ kind: "tick" }, 5);
  if (count?.kind !== "count-room") throw new Error("the room is counted first");
  const [day, week] = reads(feed({ kind: "room-counted", push: count.push }, 6));
  expect(feed({ kind: "failed", push: count.push }, 7)).toEqual([]);
  const effects = feed(answerOf(week!), 8);
  expect([day?.board.kind, ...effects.map((effect) => effect.kind === "publish" && effect.update.kind)]).toEqual([
    "day",
    "shown",
    "behind",
    "behind",
  ]);
});

test("[LIVEB3] no board of a room that is behind is read", () => {
  const { feed, watch } = begin("behind");
  watch("day", 0);
  expect(feed({ kind: "tick" }, 5)).toEqual([{ kind: "publish", update: { kind: "behind", room: ROOM, role: "everyone", window: "day" } }]);
});

test("[LIVEB4] a sought user is read with the board, also when nothing has changed, and is published with its place", () => {
  const { feed, watch } = begin();
  watch("day", 0);
  const [count] = feed({ kind: "tick" }, 5);
  if (count?.kind !== "count-room") throw new Error("the room is counted first");
  feed(answerOf(reads(feed({ kind: "room-counted", push: count.push }, 6))[0]!), 7);
  const seek = (users: readonly string[], ms: number) =>
    feed({ kind: "watch", watch: { room: ROOM, role: "everyone", window: "day", isNew: false, sought: [...users] } }, ms);
  seek(["zoe"], 20);
  const [read] = reads(feed({ kind: "tick" }, 25));
  expect(read).toMatchObject({ from: "recent", sought: ["zoe"] });
  const own = [{ user: "zoe", rank: 201, score: 3 }];
  expect(feed({ ...(answerOf(read!) as LiveInput & { kind: "board-read" }), own }, 26)).toMatchObject([
    { kind: "publish", update: { kind: "shown", own: [["zoe", 201, 3]] } },
  ]);
  seek(["zoe"], 30);
  expect(feed({ kind: "tick" }, 40), "a user that is known already").toEqual([]);
});

test("[LIVEB6] a gateway that missed the last push receives it with the renewal of its watch, and no gateway that has it does", () => {
  const { feed, watch } = begin();
  watch("day", 0);
  const [count] = feed({ kind: "tick" }, 5);
  if (count?.kind !== "count-room") throw new Error("the room is counted first");
  const [push] = feed(answerOf(reads(feed({ kind: "room-counted", push: count.push }, 6))[0]!), 7);
  if (push?.kind !== "publish" || push.update.kind !== "shown") throw new Error("the board is published");
  const renew = (checksum: number | undefined, ms: number) =>
    feed({ kind: "watch", watch: { room: ROOM, role: "everyone", window: "day", isNew: false, checksum } }, ms);
  for (const checksum of [push.update.checksum, undefined]) {
    renew(checksum, 20);
    expect(feed({ kind: "tick" }, 25)).toEqual([]);
  }
  renew(push.update.checksum + 1, 30);
  const [read] = reads(feed({ kind: "tick" }, 35));
  expect(feed(answerOf(read!), 36)).toEqual([push]);
});

test("[LIVEB7] a room that another leaderboard counted in the meantime is published again, although nothing changed here", () => {
  const state: { counted: Counted } = { counted: "current" };
  const timeAt = (ms: number) => ({ now: ms as Millis, wallNow: ms as UnixMillis });
  const boards = new LiveBoards(OPTIONS, () => state.counted, timeAt(0));
  const push = (ms: number): LiveEffect[] => {
    const [count] = boards.receiveInput({ kind: "tick" }, timeAt(ms));
    if (count?.kind !== "count-room") return [];
    const [read] = reads(boards.receiveInput({ kind: "room-counted", push: count.push }, timeAt(ms)));
    return boards.receiveInput(answerOf(read!), timeAt(ms));
  };
  boards.receiveInput({ kind: "watch", watch: { room: ROOM, role: "everyone", window: "all", isNew: true } }, timeAt(0));
  expect(push(5)).toHaveLength(1);
  state.counted = "elsewhere";
  expect(push(510)).toEqual([]);
  state.counted = "current";
  expect(push(1_020).map(({ kind }) => kind)).toEqual(["publish"]);
});

test("[LIVEB8] a board that this leaderboard took over and has no space for is behind, and live again once a watch of another board ended", () => {
  const state: { counted: Counted } = { counted: "elsewhere" };
  const timeAt = (ms: number) => ({ now: ms as Millis, wallNow: ms as UnixMillis });
  const boards = new LiveBoards({ ...OPTIONS, boardWatchesMax: 1 }, () => state.counted, timeAt(0));
  const watch = (window: string, isNew: boolean, ms: number): LiveEffect[] =>
    boards.receiveInput({ kind: "watch", watch: { room: ROOM, role: "everyone", window, isNew } }, timeAt(ms));
  watch("week", true, 0);
  expect(watch("day", false, 10)).toEqual([{ kind: "watch-refused" }]);
  state.counted = "current";
  const refused = [{ kind: "watch-refused" }, { kind: "publish", update: { kind: "behind", room: ROOM, role: "everyone", window: "day" } }];
  expect(watch("day", false, 20)).toEqual(refused);
  expect(watch("day", true, 2_000), "the gateway asks again while the board is behind").toEqual(refused);
  boards.receiveInput({ kind: "tick" }, timeAt(5_001));
  expect(watch("day", true, 5_002)).toEqual([]);
  const [count] = boards.receiveInput({ kind: "tick" }, timeAt(5_010));
  if (count?.kind !== "count-room") throw new Error("the room is counted first");
  const [read] = reads(boards.receiveInput({ kind: "room-counted", push: count.push }, timeAt(5_011)));
  expect(boards.receiveInput(answerOf(read!), timeAt(5_012))).toMatchObject([
    { kind: "publish", update: { kind: "shown", window: "day" } },
  ]);
});

test("[LIVEB9] one tenant's watches leave a quarter of all for other tenants, until they end", () => {
  const timeAt = (ms: number) => ({ now: ms as Millis, wallNow: ms as UnixMillis });
  const boards = new LiveBoards({ ...OPTIONS, boardWatchesMax: 4 }, () => "current", timeAt(0));
  const watch = (room: string, ms: number): string[] => {
    const request = { room: room as RoomKey, role: "everyone", window: "day", isNew: true };
    return boards.receiveInput({ kind: "watch", watch: request }, timeAt(ms)).map(({ kind }) => kind);
  };
  const refused = ["watch-refused", "publish"];
  expect(["acme.a", "acme.b", "acme.c", "acme.d"].map((room) => watch(room, 0))).toEqual([[], [], [], refused]);
  expect([watch("other.a", 0), watch("other.b", 0)]).toEqual([[], refused]);
  boards.receiveInput({ kind: "tick" }, timeAt(5_001));
  expect([watch("acme.d", 5_002), boards.size]).toEqual([[], 1]);
});

test("[LIVEB5] a watch of a window that is not counted is refused and reported as unavailable", () => {
  const time = { now: 0 as Millis, wallNow: 0 as UnixMillis };
  const boards = new LiveBoards({ ...OPTIONS, boardWindows: ["month", "all"] }, () => "current", time);
  const watch = (window: string): LiveEffect[] =>
    boards.receiveInput({ kind: "watch", watch: { room: ROOM, role: "everyone", window, isNew: true } }, time);
  expect(watch("hour")).toEqual([
    { kind: "watch-refused" },
    { kind: "publish", update: { kind: "unavailable", room: ROOM, role: "everyone", window: "hour" } },
  ]);
  expect(watch("month")).toEqual([]);
});
