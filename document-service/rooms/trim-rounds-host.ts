/** Carries out the rounds that trim-rounds.ts decides, and feeds each outcome back. */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause } from "../../shared/time/pause.ts";
import type { ReadAheadHost } from "./read-ahead-host.ts";
import type { DocumentRoomHost } from "./room-host.ts";
import type { TrimRounds, TrimRoundsEffect, TrimRoundsInput } from "./trim-rounds.ts";

export class TrimRoundsHost {
  readonly #newRounds: () => TrimRounds;
  readonly #hosts: ReadonlyMap<RoomKey, DocumentRoomHost>;
  readonly #ahead: ReadAheadHost;
  readonly #clock: Clock;

  /** `hosts`: of the partition's rooms at any time. */
  constructor(newRounds: () => TrimRounds, hosts: ReadonlyMap<RoomKey, DocumentRoomHost>, ahead: ReadAheadHost, clock: Clock) {
    this.#newRounds = newRounds;
    this.#hosts = hosts;
    this.#ahead = ahead;
    this.#clock = clock;
  }

  /** Resolves after the signal, at the end of the step that runs. */
  async run(signal: AbortSignal): Promise<void> {
    const rounds = this.#newRounds();
    signal.addEventListener("abort", () => void rounds.receive({ kind: "stop" }, this.#clock.now()));
    let input: TrimRoundsInput | undefined = { kind: "wake" };
    while (input !== undefined) {
      let next: TrimRoundsInput | undefined;
      for (const effect of rounds.receive(input, this.#clock.now())) next = await this.#carryOut(effect, signal);
      input = next;
    }
  }

  /** Undefined: the effect has no outcome. */
  async #carryOut(effect: TrimRoundsEffect, signal: AbortSignal): Promise<TrimRoundsInput | undefined> {
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
      case "forget":
        return void this.#ahead.forgetRoom(effect.room);
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
