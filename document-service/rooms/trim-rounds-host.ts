/**
 * Connects trim rounds (trim-rounds.ts) to rooms and to the log, and reads the log in the passes that read-ahead.ts
 * plans. A pass that fails is not repeated: each room is then read separately.
 */

import { assertNever } from "../../shared/assert.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause, rethrowMistake } from "../../shared/time/pause.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { EditLog } from "../ports.ts";
import { ReadAhead, type ReadAheadOptions, type ReadAheadPass, type ReadAheadResult, type RoomRange } from "./read-ahead.ts";
import type { DocumentRoomHost } from "./room-host.ts";
import type { TrimRounds, TrimRoundsEffect, TrimRoundsInput } from "./trim-rounds.ts";

export class TrimRoundsHost {
  readonly #newRounds: () => TrimRounds;
  readonly #hosts: ReadonlyMap<RoomKey, DocumentRoomHost>;
  readonly #ahead: ReadAheadHost;
  readonly #clock: Clock;

  /** `hosts`: returns the partition's current rooms. */
  constructor(newRounds: () => TrimRounds, hosts: ReadonlyMap<RoomKey, DocumentRoomHost>, ahead: ReadAheadHost, clock: Clock) {
    this.#newRounds = newRounds;
    this.#hosts = hosts;
    this.#ahead = ahead;
    this.#clock = clock;
  }

  /** Resolves after the signal, at the end of the current step. */
  async run(signal: AbortSignal): Promise<void> {
    const rounds = this.#newRounds();
    signal.addEventListener("abort", () => void rounds.receive({ kind: "stop" }, this.#clock.now()));
    let input: TrimRoundsInput | undefined = { kind: "wake" };
    while (input !== undefined) {
      let next: TrimRoundsInput | undefined;
      for (const effect of rounds.receive(input, this.#clock.now())) {
        // Not awaited: during a pause before the trim, another job of its room could begin.
        if (effect.kind === "forget") this.#ahead.forgetRoom(effect.room);
        else next = await this.#carryOut(effect, signal);
      }
      input = next;
    }
  }

  /** Undefined: the effect has no outcome. */
  async #carryOut(effect: Exclude<TrimRoundsEffect, { kind: "forget" }>, signal: AbortSignal): Promise<TrimRoundsInput | undefined> {
    switch (effect.kind) {
      case "find-ranges": {
        const ranges = await Promise.all(effect.rooms.map((room) => this.#hosts.get(room)?.trimRange()));
        return { kind: "ranges-found", ranges };
      }
      case "read-ahead":
        return { kind: "read-ahead", result: await this.#ahead.readAhead(effect.ranges, signal) };
      case "trim":
        return {
          kind: "trimmed",
          isTrimmed: (await this.#hosts.get(effect.room)?.runJob({ kind: "trim", before: effect.before })) === true,
        };
      case "wait":
        await pause(this.#clock, effect.ms, signal);
        return { kind: "wake" };
      case "ended":
        return undefined;
      default:
        return assertNever(effect);
    }
  }
}

export class ReadAheadHost {
  /** The log from the view of rooms: records that were read ahead come from memory. */
  readonly log: EditLog;
  readonly #partition: number;
  readonly #ahead: ReadAhead;
  readonly #deps: { readonly log: Log; readonly metrics: DocumentServiceMetrics };

  constructor(partition: number, log: EditLog, options: ReadAheadOptions, deps: { log: Log; metrics: DocumentServiceMetrics }) {
    this.log = { ...log, read: (room, after, through) => this.#read(log, room, after, through) };
    this.#partition = partition;
    this.#ahead = new ReadAhead(options);
    this.#deps = deps;
  }

  /** If a pass fails, each room is read separately. */
  async readAhead(ranges: readonly RoomRange[], signal: AbortSignal): Promise<ReadAheadResult> {
    const pass = this.#ahead.plan(ranges);
    if (pass === undefined) return this.#ahead.end();
    try {
      await this.#readPass(pass, signal);
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "the log was not read ahead for trimming; each room is read by itself");
      this.#deps.metrics.trimPasses.inc({ outcome: "failed" });
      this.#ahead.clear();
      return this.#ahead.end();
    }
    const result = this.#ahead.end();
    this.#deps.metrics.trimPasses.inc({ outcome: result.isCut ? "cut" : "whole" });
    return result;
  }

  /** The room is trimmed, or will not be. */
  forgetRoom(room: RoomKey): void {
    this.#ahead.forgetRoom(room);
  }

  async #readPass({ from, through }: ReadAheadPass, signal: AbortSignal): Promise<void> {
    for await (const record of this.log.readAll(this.#partition, from, through)) {
      if (signal.aborted) return this.#ahead.cut();
      if (!this.#ahead.receiveRecord(record)) return;
    }
  }

  async *#read(log: EditLog, room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord> {
    const source = this.#ahead.sourceOf(room, after, through);
    if (source.kind === "log") yield* log.read(room, after, through);
    if (source.kind === "log-then-held") yield* readBefore(log, room, after, source.firstHeld);
    if (source.kind !== "log") yield* source.held;
  }
}

/** The records before `before`. A replica that lags may answer; one that shows the record at `before` has all before it. */
async function* readBefore(log: EditLog, room: RoomKey, after: number, before: number): AsyncIterable<StoredRecord> {
  let read = after;
  for await (const record of log.read(room, after, before)) {
    read = record.streamSeq;
    if (read < before) yield record;
  }
  if (read < before) {
    throw new Error(`the log does not show record ${before} of room ${room}, which is there: a replica lags, or the record was lost`);
  }
}
