/**
 * Trims the logs of a partition's rooms in rounds, one room at a time, spread over the round. No request waits for a
 * trim, and many trims at once would slow NATS for all clients. The records that a round adds to histories are read in
 * one pass first, if that costs less. A round that takes longer than its time delays the next one.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { ReadAheadResult, RoomRange } from "./read-ahead.ts";

export type TrimRoundsOptions = { readonly historySegmentMsMin: number };

/** A room from the view of the rounds. */
export type TrimmableRoom = { readonly key: RoomKey; isTrimDue(now: Millis): boolean };

export type TrimRoundsInput =
  | { readonly kind: "wake" }
  | { readonly kind: "ranges-found"; readonly ranges: readonly (RoomRange | undefined)[] }
  | { readonly kind: "read-ahead"; readonly result: ReadAheadResult }
  | { readonly kind: "trimmed"; readonly isTrimmed: boolean }
  | { readonly kind: "stop" };

/** Each effect but "forget" and "ended" has one outcome, which is the next input; a "wait" ends with "wake". */
export type TrimRoundsEffect =
  | { readonly kind: "find-ranges"; readonly rooms: readonly RoomKey[] }
  | { readonly kind: "read-ahead"; readonly ranges: readonly RoomRange[] }
  /** `before`: the trim stops before this record of the room. */
  | { readonly kind: "trim"; readonly room: RoomKey; readonly before: number | undefined }
  | { readonly kind: "forget"; readonly room: RoomKey }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "ended" };

type Round = {
  readonly begunAt: Millis;
  readonly due: TrimmableRoom[];
  readonly result: ReadAheadResult;
  readonly apartMs: number;
  isAnyTrimmed: boolean;
};

type TrimRoundsState =
  | { readonly kind: "between-rounds" }
  | { readonly kind: "finding-ranges"; readonly begunAt: Millis; readonly due: readonly TrimmableRoom[] }
  | { readonly kind: "reading-ahead"; readonly begunAt: Millis; readonly due: readonly TrimmableRoom[] }
  | { readonly kind: "trimming"; readonly round: Round; readonly room: RoomKey; readonly turnAt: Millis }
  | { readonly kind: "between-trims"; readonly round: Round }
  | { readonly kind: "ended" };

const ROUND_MS_MIN = 100;

export class TrimRounds {
  /** Returns the partition's current rooms. */
  readonly #rooms: ReadonlyMap<RoomKey, TrimmableRoom>;
  readonly #roundMs: number;
  #state: TrimRoundsState = { kind: "between-rounds" };
  #isStopping = false;

  constructor(rooms: ReadonlyMap<RoomKey, TrimmableRoom>, { historySegmentMsMin }: TrimRoundsOptions) {
    this.#rooms = rooms;
    this.#roundMs = Math.max(ROUND_MS_MIN, historySegmentMsMin);
  }

  /** Begin with "wake". After "stop" the current step is the last: its outcome, or the next "wake", ends the rounds. */
  receive(input: TrimRoundsInput, now: Millis): TrimRoundsEffect[] {
    const state = this.#state;
    switch (input.kind) {
      case "wake":
        if (state.kind === "between-rounds") return this.#beginRound(now);
        return state.kind === "between-trims" ? this.#trimNext(state.round, now) : [];
      case "ranges-found": {
        assert(state.kind === "finding-ranges", "ranges are found for a round");
        this.#state = { kind: "reading-ahead", begunAt: state.begunAt, due: state.due };
        return [{ kind: "read-ahead", ranges: input.ranges.filter((range) => range !== undefined) }];
      }
      case "read-ahead": {
        assert(state.kind === "reading-ahead", "the log is read ahead for a round");
        const { begunAt, due } = state;
        const apartMs = input.result.isCut ? 0 : this.#roundMs / due.length;
        return this.#trimNext({ begunAt, due: [...due], result: input.result, apartMs, isAnyTrimmed: false }, now);
      }
      case "trimmed": {
        assert(state.kind === "trimming", "a room is trimmed in a round");
        const { round, room, turnAt } = state;
        round.isAnyTrimmed ||= input.isTrimmed;
        return [{ kind: "forget", room }, ...this.#waitForTurn(round, turnAt, now)];
      }
      case "stop":
        this.#isStopping = true;
        return [];
      default:
        return assertNever(input);
    }
  }

  #beginRound(now: Millis): TrimRoundsEffect[] {
    if (this.#isStopping) return this.#end();
    const due = [...this.#rooms.values()].filter((room) => room.isTrimDue(now));
    if (due.length === 0) return this.#waitForRound(now, now);
    this.#state = { kind: "finding-ranges", begunAt: now, due };
    return [{ kind: "find-ranges", rooms: due.map(({ key }) => key) }];
  }

  /** A room that is no longer due, or that another room object has replaced, is skipped. */
  #trimNext(round: Round, now: Millis): TrimRoundsEffect[] {
    if (this.#isStopping) return this.#end();
    const forgotten: TrimRoundsEffect[] = [];
    for (let room = round.due.shift(); room !== undefined; room = round.due.shift()) {
      const { key } = room;
      const end = round.result.ends.get(key);
      if (end === "next-round") continue;
      if (this.#rooms.get(key) === room && room.isTrimDue(now)) {
        this.#state = { kind: "trimming", round, room: key, turnAt: now };
        return [...forgotten, { kind: "trim", room: key, before: end }];
      }
      forgotten.push({ kind: "forget", room: key });
      if (round.apartMs > 0) return [...forgotten, ...this.#waitForTurn(round, now, now)];
    }
    return [...forgotten, ...this.#endRound(round, now)];
  }

  #waitForTurn(round: Round, turnAt: Millis, now: Millis): TrimRoundsEffect[] {
    const ms = turnAt + round.apartMs - now;
    if (ms <= 0 || this.#isStopping) return this.#trimNext(round, now);
    this.#state = { kind: "between-trims", round };
    return [{ kind: "wait", ms }];
  }

  /** If the pass was cut and rooms can be trimmed, the next round follows at once. */
  #endRound({ begunAt, result, isAnyTrimmed }: Round, now: Millis): TrimRoundsEffect[] {
    return result.isCut && isAnyTrimmed ? this.#beginRound(now) : this.#waitForRound(begunAt, now);
  }

  #waitForRound(begunAt: Millis, now: Millis): TrimRoundsEffect[] {
    const ms = begunAt + this.#roundMs - now;
    if (ms <= 0) return this.#beginRound(now);
    this.#state = { kind: "between-rounds" };
    return [{ kind: "wait", ms }];
  }

  #end(): TrimRoundsEffect[] {
    this.#state = { kind: "ended" };
    return [{ kind: "ended" }];
  }
}
