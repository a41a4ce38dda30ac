/**
 * One partition of the log in this process: whether the process counts it, from which floor, and when the next pass
 * begins. A pass ends at its first failure. The next pass begins at the floor, after a delay that doubles until a pass
 * has caught up.
 */

import { assertNever } from "../../shared/assert.ts";
import type { LeaseFacts } from "../../shared/cluster/lease-holder.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { LogFloor } from "./progress.ts";
import type { CountingPass } from "./pass.ts";

export type PartitionInput =
  | { readonly kind: "lease-taken"; readonly facts: LeaseFacts }
  | { readonly kind: "floor-raised"; readonly floor: LogFloor }
  /** The pass is over and its last request has been answered. */
  | { readonly kind: "pass-ended"; readonly pass: Pick<CountingPass, "reason" | "hasCaughtUp" | "through"> }
  | { readonly kind: "tick" }
  /** The leaderboard stops: checkpoints are saved before the lease is released. */
  | { readonly kind: "stop" }
  | { readonly kind: "lease-lost" }
  | { readonly kind: "drained" };

export type PartitionEffect =
  | { readonly kind: "begin-pass"; readonly floor: LogFloor; readonly through: UnixMillis; readonly reason: string }
  | { readonly kind: "stop-pass" | "drain-pass" }
  /** Time of the next "tick". */
  | { readonly kind: "wait"; readonly ms: number }
  /** No work on the partition is in progress in this process. */
  | { readonly kind: "leave"; readonly facts: LeaseFacts };

type State =
  /** "waiting": the partition waits for the next pass. */
  | { readonly kind: "elsewhere" | "counting" | "waiting" | "draining" }
  /** The pass completes its last requests. `isStopping`: the pass saves checkpoints afterwards. */
  | { readonly kind: "ending"; readonly isStopping: boolean };

const RETRY_MS = 250;
const RETRY_MS_MAX = 4_000;

export class CountedPartition {
  #state: State = { kind: "elsewhere" };
  #floor: LogFloor = { edits: 0, sentinel: undefined };
  #through = 0 as UnixMillis;
  #failures = 0;
  /** Reason of the next pass. */
  #reason = "lease";

  /** Progress at which the next holder of the lease begins. */
  get facts(): LeaseFacts {
    return { floor: this.#floor.edits, said: this.#floor.sentinel, last: this.#floor.last };
  }

  receiveInput(input: PartitionInput): PartitionEffect[] {
    switch (input.kind) {
      case "lease-taken":
        this.#floor = { edits: input.facts.floor, sentinel: input.facts.said, last: input.facts.last };
        [this.#reason, this.#failures, this.#through] = ["lease", 0, 0 as UnixMillis];
        return this.#beginPass();
      case "floor-raised":
        this.#floor = input.floor;
        return [];
      case "pass-ended":
        return this.#receivePassEnd(input.pass);
      case "tick":
        return this.#state.kind === "waiting" ? this.#beginPass() : [];
      case "stop":
      case "lease-lost":
        return this.#endCounting(input.kind === "stop");
      case "drained":
        return this.#leave();
      default:
        return assertNever(input);
    }
  }

  #beginPass(): PartitionEffect[] {
    this.#state = { kind: "counting" };
    return [{ kind: "begin-pass", floor: this.#floor, through: this.#through, reason: this.#reason }];
  }

  #receivePassEnd({ reason, hasCaughtUp, through }: Pick<CountingPass, "reason" | "hasCaughtUp" | "through">): PartitionEffect[] {
    if (hasCaughtUp) this.#failures = 0;
    [this.#reason, this.#through] = [reason, through];
    if (this.#state.kind === "ending") {
      if (!this.#state.isStopping || reason !== "lease") return this.#leave();
      this.#state = { kind: "draining" };
      return [{ kind: "drain-pass" }];
    }
    this.#state = { kind: "waiting" };
    return [{ kind: "wait", ms: Math.min(RETRY_MS * 2 ** this.#failures++, RETRY_MS_MAX) }];
  }

  #endCounting(isStopping: boolean): PartitionEffect[] {
    if (this.#state.kind === "waiting") return this.#leave();
    if (this.#state.kind !== "counting") return [];
    this.#state = { kind: "ending", isStopping };
    return [{ kind: "stop-pass" }];
  }

  #leave(): PartitionEffect[] {
    this.#state = { kind: "elsewhere" };
    return [{ kind: "leave", facts: this.facts }];
  }
}
