import { expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { ReadAhead, RoomRange } from "./read-ahead-host.ts";
import { TrimsHost, type Trimmed } from "./trims-host.ts";

const ROUND_MS = 1_000;

class Room implements Trimmed {
  readonly room: RoomKey;
  isDue = true;
  isFailing = false;
  trims = 0;
  before: number | undefined;
  done: (() => void) | undefined;

  constructor(name: string) {
    this.room = name as RoomKey;
  }

  isTrimDue(): boolean {
    return this.isDue && this.done === undefined;
  }

  trimRange(): Promise<RoomRange> {
    return Promise.resolve({ room: this.room, after: 0, from: 0, through: 10, records: 10 });
  }

  trim(before?: number): Promise<boolean> {
    this.trims += 1;
    this.before = before;
    return new Promise((resolve) => {
      this.done = () => {
        this.done = undefined;
        resolve(!this.isFailing);
      };
    });
  }
}

class Rig {
  readonly clock = new FakeClock();
  readonly rooms: Map<RoomKey, Room>;
  readonly forgotten: RoomKey[] = [];
  readonly passes: number[] = [];
  ahead: ReadAhead = { ends: new Map(), isCut: false };
  readonly stopping = new AbortController();
  readonly hasEnded: Promise<void>;

  constructor(...names: string[]) {
    this.rooms = new Map(names.map((name) => [name as RoomKey, new Room(name)]));
    const ahead = {
      read: (ranges: readonly RoomRange[]) => {
        this.passes.push(ranges.length);
        return Promise.resolve(this.ahead);
      },
      forget: (room: RoomKey) => void this.forgotten.push(room),
    };
    this.hasEnded = new TrimsHost(this.rooms, ahead, { historySegmentMsMin: ROUND_MS }, this.clock).run(this.stopping.signal);
  }

  room(name: string): Room {
    return this.rooms.get(name as RoomKey)!;
  }

  get underWay(): string[] {
    return [...this.rooms.values()].filter(({ done }) => done !== undefined).map(({ room }) => room);
  }

  /** Ends all that are under way and lets the time go by. */
  async after(ms: number): Promise<string[]> {
    for (const { done } of this.rooms.values()) done?.();
    await this.clock.advance(ms);
    return this.underWay;
  }
}

test("[TRM9] a round's logs are trimmed one at a time, spread over the round, and each once", async () => {
  const rig = new Rig("a", "b", "c", "d");
  expect(await rig.after(0)).toEqual(["a"]);
  expect(await rig.after(ROUND_MS / 4 - 1)).toEqual([]);
  expect(await rig.after(1)).toEqual(["b"]);
  await rig.clock.advance(ROUND_MS); // It takes long, and nobody else is begun meanwhile.
  expect(rig.underWay).toEqual(["b"]);
  expect(await rig.after(0)).toEqual(["c"]);
  expect(await rig.after(ROUND_MS / 4)).toEqual(["d"]);
  expect([...rig.rooms.values()].map(({ trims }) => trims)).toEqual([1, 1, 1, 1]);
  expect(await rig.after(ROUND_MS / 4), "the next round").toEqual(["a"]);
});

test("[TRM10] what is due no more when its turn comes is passed over, and so is a room whose place another took", async () => {
  const rig = new Rig("a", "b", "c", "d");
  await rig.after(0);
  rig.room("b").isDue = false;
  const c = rig.room("c");
  rig.rooms.set(c.room, new Room("c"));
  expect(await rig.after(ROUND_MS)).toEqual(["d"]);
  expect([rig.room("b").trims, c.trims, rig.room("c").trims]).toEqual([0, 0, 0]);
  expect(rig.forgotten, "what was read for them is given up").toEqual(["a", "b", "c"]);
});

test("[TRM11] rooms are trimmed as far as was read ahead for them; where there was more than could be read the next round follows at once", async () => {
  const rig = new Rig("a", "b");
  rig.ahead = { ends: new Map([["a" as RoomKey, 7]]), isCut: true };
  await rig.after(0);
  rig.ahead = { ends: new Map(), isCut: false };
  await rig.after(0);
  expect([rig.room("a").before, rig.room("b").before]).toEqual([7, undefined]);
  expect(rig.underWay).toEqual(["b"]);
  expect(rig.passes).toEqual([2]);
  await rig.after(0);
  expect(rig.passes).toEqual([2, 2]);
});

test("[TRM12] once stopped nothing more is begun, and the trim under way is waited for", async () => {
  const rig = new Rig("a", "b");
  await rig.after(0);
  let hasEnded = false;
  void rig.hasEnded.then(() => (hasEnded = true));
  rig.stopping.abort();
  await rig.clock.advance(ROUND_MS);
  expect([rig.underWay, hasEnded]).toEqual([["a"], false]);
  await rig.after(0);
  expect([rig.room("b").trims, hasEnded]).toEqual([0, true]);
});

test("[TRM13] each room that is due has its turn in every round, though one takes longer than the round and all are due again at once", async () => {
  const round = ["slow", "a", "b", "c"];
  const rig = new Rig(...round);
  const begun: string[] = [];
  for (let quarter = 0; quarter < 100 && begun.length < 12; quarter++) {
    begun.push(...(await rig.after(ROUND_MS / 4)));
    if (begun.at(-1) === "slow") await rig.clock.advance(15 * ROUND_MS);
  }
  expect(begun).toEqual([...round, ...round, ...round]);
});

test("[TRM14] a room that a pass was not come to waits for the next round, and is not read by itself", async () => {
  const rig = new Rig("a", "b");
  rig.ahead = {
    ends: new Map<RoomKey, number | "next-round">([
      ["a" as RoomKey, 7],
      ["b" as RoomKey, "next-round"],
    ]),
    isCut: true,
  };
  await rig.after(0);
  rig.ahead = { ends: new Map(), isCut: false };
  await rig.after(0);
  expect([rig.room("b").trims, rig.passes]).toEqual([0, [2, 2]]);
  expect(rig.underWay).toEqual(["a"]);
});

test("[TRM15] where nothing can be trimmed the log is not read again and again, however much there is", async () => {
  const rig = new Rig("a", "b");
  for (const room of rig.rooms.values()) room.isFailing = true;
  rig.ahead = { ends: new Map(), isCut: true };
  for (let turns = 0; turns < 10; turns++) await rig.after(0);
  expect(rig.passes).toEqual([2]);
  await rig.after(ROUND_MS);
  expect(rig.passes).toEqual([2, 2]);
});
