import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { ReadAheadResult } from "./read-ahead.ts";
import { type TrimmableRoom, TrimRounds, type TrimRoundsEffect, type TrimRoundsInput } from "./trim-rounds.ts";

const ROUND_MS = 1_000;

class FakeRoom implements TrimmableRoom {
  readonly key: RoomKey;
  isDue = true;
  isFailing = false;
  trims = 0;
  before: number | undefined;
  isTrimming = false;

  constructor(name: string) {
    this.key = name as RoomKey;
  }

  isTrimDue(): boolean {
    return this.isDue && !this.isTrimming;
  }
}

/** Finds ranges and reads ahead at once; trims end, and time passes, when the test decides. */
class Rig {
  readonly rooms: Map<RoomKey, FakeRoom>;
  readonly forgotten: RoomKey[] = [];
  readonly passes: number[] = [];
  ahead: ReadAheadResult = { ends: new Map(), isCut: false };
  hasEnded = false;
  #now = 0;
  #wakeAt: number | undefined = 0;
  #trimming: FakeRoom | undefined;
  readonly #rounds: TrimRounds;

  constructor(...names: string[]) {
    this.rooms = new Map(names.map((name) => [name as RoomKey, new FakeRoom(name)]));
    this.#rounds = new TrimRounds(this.rooms, { historySegmentMsMin: ROUND_MS });
  }

  room(name: string): FakeRoom {
    return this.rooms.get(name as RoomKey)!;
  }

  get underWay(): string[] {
    return this.#trimming === undefined ? [] : [this.#trimming.key];
  }

  stop(): void {
    this.#receive({ kind: "stop" });
    this.#wake(); // A wait ends early.
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    while (this.#wakeAt !== undefined && this.#wakeAt <= end) {
      this.#now = this.#wakeAt;
      this.#wake();
    }
    this.#now = end;
  }

  /** Ends the trim that runs, and lets the time pass. The first call starts the rounds. */
  after(ms: number): string[] {
    const trimmed = this.#trimming;
    this.#trimming = undefined;
    if (trimmed !== undefined) {
      trimmed.isTrimming = false;
      this.#receive({ kind: "trimmed", isTrimmed: !trimmed.isFailing });
    }
    this.advance(ms);
    return this.underWay;
  }

  #wake(): void {
    if (this.#wakeAt === undefined) return;
    this.#wakeAt = undefined;
    this.#receive({ kind: "wake" });
  }

  #receive(input: TrimRoundsInput): void {
    for (const effect of this.#rounds.receive(input, this.#now as Millis)) this.#carryOut(effect);
  }

  #carryOut(effect: TrimRoundsEffect): void {
    switch (effect.kind) {
      case "find-ranges":
        return this.#receive({
          kind: "ranges-found",
          ranges: effect.rooms.map((room) => ({ room, after: 0, from: 0, through: 10, records: 10 })),
        });
      case "read-ahead":
        this.passes.push(effect.ranges.length);
        return this.#receive({ kind: "read-ahead", result: this.ahead });
      case "trim": {
        const room = this.rooms.get(effect.room)!;
        room.trims += 1;
        room.before = effect.before;
        room.isTrimming = true;
        this.#trimming = room;
        return;
      }
      case "forget":
        return void this.forgotten.push(effect.room);
      case "wait":
        this.#wakeAt = this.#now + effect.ms;
        return;
      case "ended":
        this.hasEnded = true;
    }
  }
}

test("[TRM9] the logs of a round are trimmed one at a time, spread over the round, and each once", () => {
  const rig = new Rig("a", "b", "c", "d");
  expect(rig.after(0)).toEqual(["a"]);
  expect(rig.after(ROUND_MS / 4 - 1)).toEqual([]);
  expect(rig.after(1)).toEqual(["b"]);
  rig.advance(ROUND_MS); // The trim of b takes long, and no other trim begins meanwhile.
  expect(rig.underWay).toEqual(["b"]);
  expect(rig.after(0)).toEqual(["c"]);
  expect(rig.after(ROUND_MS / 4)).toEqual(["d"]);
  expect([...rig.rooms.values()].map(({ trims }) => trims)).toEqual([1, 1, 1, 1]);
  expect(rig.after(ROUND_MS / 4), "the next round").toEqual(["a"]);
});

test("[TRM10] a room that is no longer due at its turn, or that another has replaced, is skipped", () => {
  const rig = new Rig("a", "b", "c", "d");
  rig.after(0);
  rig.room("b").isDue = false;
  const c = rig.room("c");
  rig.rooms.set(c.key, new FakeRoom("c"));
  expect(rig.after(ROUND_MS)).toEqual(["d"]);
  expect([rig.room("b").trims, c.trims, rig.room("c").trims]).toEqual([0, 0, 0]);
  expect(rig.forgotten, "what was read for them is released").toEqual(["a", "b", "c"]);
});

test("[TRM11] rooms are trimmed as far as they were read ahead, and after a cut pass the next round follows at once", () => {
  const rig = new Rig("a", "b");
  rig.ahead = { ends: new Map([["a" as RoomKey, 7]]), isCut: true };
  rig.after(0);
  rig.ahead = { ends: new Map(), isCut: false };
  rig.after(0);
  expect([rig.room("a").before, rig.room("b").before]).toEqual([7, undefined]);
  expect(rig.underWay).toEqual(["b"]);
  expect(rig.passes).toEqual([2]);
  rig.after(0);
  expect(rig.passes).toEqual([2, 2]);
});

test("[TRM12] after a stop no trim begins, and the one that runs is finished", () => {
  const rig = new Rig("a", "b");
  rig.after(0);
  rig.stop();
  rig.advance(ROUND_MS);
  expect([rig.underWay, rig.hasEnded]).toEqual([["a"], false]);
  rig.after(0);
  expect([rig.room("b").trims, rig.hasEnded]).toEqual([0, true]);
});

test("[TRM13] each due room has its turn in every round, even if one trim takes longer than the round", () => {
  const round = ["slow", "a", "b", "c"];
  const rig = new Rig(...round);
  const begun: string[] = [];
  for (let quarter = 0; quarter < 100 && begun.length < 12; quarter++) {
    begun.push(...rig.after(ROUND_MS / 4));
    if (begun.at(-1) === "slow") rig.advance(15 * ROUND_MS);
  }
  expect(begun).toEqual([...round, ...round, ...round]);
});

test("[TRM14] a room that a pass did not reach waits for the next round and is not read separately", () => {
  const rig = new Rig("a", "b");
  rig.ahead = {
    ends: new Map<RoomKey, number | "next-round">([
      ["a" as RoomKey, 7],
      ["b" as RoomKey, "next-round"],
    ]),
    isCut: true,
  };
  rig.after(0);
  rig.ahead = { ends: new Map(), isCut: false };
  rig.after(0);
  expect([rig.room("b").trims, rig.passes]).toEqual([0, [2, 2]]);
  expect(rig.underWay).toEqual(["a"]);
});

test("[TRM15] if no trim succeeds, the log is not read again before the next round", () => {
  const rig = new Rig("a", "b");
  for (const room of rig.rooms.values()) room.isFailing = true;
  rig.ahead = { ends: new Map(), isCut: true };
  for (let turns = 0; turns < 10; turns++) rig.after(0);
  expect(rig.passes).toEqual([2]);
  rig.after(ROUND_MS);
  expect(rig.passes).toEqual([2, 2]);
});
