/**
 * A claim of a room, until it has become this server's or cannot:
 *
 *   subscribing -> reading -> fencing -> loading -> won
 *
 * It subscribes before it fences, so that gateways' edits have somewhere to go the moment they hear of the new epoch.
 * The epoch record in the log is the claim: from then on no earlier owner can append. With a warm copy there is nothing
 * left to load.
 */

import { assertNever } from "../shared/assert.ts";
import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import { encodeEpochRecord, epochOf, headOf, type LogRecord, type RecordStamp } from "../shared/bus/record.ts";
import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../shared/ids.ts";
import type { BacklogBudget } from "./backlog.ts";
import { type Hole, Loading, type LoadingOptions } from "./loading.ts";
import type { AppendOutcome, OutgoingRecord, StoredRecord } from "./ports.ts";
import type { RoomStart } from "./room.ts";

export type ClaimInput =
  | { kind: "subscribed" }
  | { kind: "log-end-read"; last: StoredRecord | undefined; checkpoint: Checkpoint | undefined }
  | { kind: "append-settled"; outcome: AppendOutcome }
  | { kind: "log-read"; record: LogRecord }
  | { kind: "log-read-whole" }
  | { kind: "checkpoint-read"; checkpoint: Checkpoint | undefined }
  | { kind: "tick" };

export type ClaimEffect =
  | { kind: "read-log-end" }
  | { kind: "append"; record: OutgoingRecord; edits: 0 }
  /** The claim stands: nobody before can append any more. */
  | { kind: "fenced-others"; epoch: Epoch }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; after: number; through: number }
  | { kind: "read-checkpoint" }
  | { kind: "log-hole"; hole: Hole };

/** What a claim has come to. */
export type ClaimStep =
  | { kind: "under-way"; effects: readonly ClaimEffect[] }
  | { kind: "won"; effects: readonly ClaimEffect[]; start: RoomStart }
  | { kind: "lost"; why: "fenced" | "failed"; reason: string };

/** What a server that followed the room knows of it already: every record up to `last`. */
export type WarmCopy = { readonly loading: Loading; readonly last: { readonly id: string; readonly streamSeq: number } };

export type ClaimOptions = LoadingOptions & { readonly claimMsMax: number };
/** `nextStamp`: what the next record is marked with. */
export type ClaimDeps = { readonly budget: BacklogBudget; readonly nextStamp: () => RecordStamp };

/** Times that checkpoint and log are read again when they do not fit together. */
const RELOADS_MAX = 3;

type State =
  | { kind: "subscribing" }
  | { kind: "reading" }
  | { kind: "fencing"; epoch: Epoch; head: Seq; checkpoint: Checkpoint | undefined; last: StoredRecord | undefined; claimedAt: UnixMillis }
  | { kind: "loading"; epoch: Epoch; head: Seq; streamSeq: number; loading: Loading; reloads: number; claimedAt: UnixMillis };

export class Claim {
  readonly #key: RoomKey;
  readonly #options: ClaimOptions;
  readonly #deps: ClaimDeps;
  readonly #begun: Millis;
  #warm: WarmCopy | undefined;
  #state: State = { kind: "subscribing" };

  constructor(key: RoomKey, options: ClaimOptions, deps: ClaimDeps, now: Millis, warm: WarmCopy | undefined) {
    this.#key = key;
    this.#options = options;
    this.#deps = deps;
    this.#begun = now;
    this.#warm = warm;
  }

  get phase(): State["kind"] {
    return this.#state.kind;
  }

  /** Once the claim stands. */
  get epoch(): Epoch | undefined {
    return this.#state.kind === "loading" ? this.#state.epoch : undefined;
  }

  /** Gives back what was gathered. */
  clear(): void {
    this.#warm?.loading.clear();
    if (this.#state.kind === "loading") this.#state.loading.clear();
  }

  receive(input: ClaimInput, now: Millis): ClaimStep {
    switch (input.kind) {
      case "subscribed":
        this.#state = { kind: "reading" };
        return goingOn({ kind: "read-log-end" });
      case "log-end-read":
        return this.#fence(input.last, input.checkpoint);
      case "append-settled":
        return input.outcome.kind === "fenced" ? lost("fenced", "another server has claimed the room") : this.#receiveFenced(input.outcome.streamSeq, now);
      case "log-read":
        if (this.#state.kind === "loading") this.#state.loading.receiveRecord(input.record);
        return NOTHING;
      case "log-read-whole":
        return this.#receiveLoaded([]);
      case "checkpoint-read":
        return this.#reload(input.checkpoint, now);
      case "tick": // Loading takes as long as there is to read; each read has a deadline of its own.
        return this.#state.kind !== "loading" && now - this.#begun > this.#options.claimMsMax ? lost("failed", "the claim took too long: look at the log's health") : NOTHING;
      default:
        return assertNever(input);
    }
  }

  #fence(last: StoredRecord | undefined, checkpoint: Checkpoint | undefined): ClaimStep {
    if (this.#state.kind !== "reading") return NOTHING;
    // Above the checkpoint too: should the log ever be lost, the snapshot's seqs and epochs are not given out again.
    const epoch = (Math.max(last === undefined ? 0 : epochOf(last.record), checkpoint?.epoch ?? 0) + 1) as Epoch;
    const head = Math.max(last === undefined ? 0 : headOf(last.record), checkpoint?.seq ?? 0) as Seq;
    const stamp = this.#deps.nextStamp();
    this.#state = { kind: "fencing", epoch, head, checkpoint, last, claimedAt: stamp.time };
    const bytes = encodeEpochRecord({ ...stamp, epoch, head });
    return goingOn({ kind: "append", record: { id: stamp.id, bytes, expectedStreamSeq: last?.streamSeq ?? 0 }, edits: 0 });
  }

  #receiveFenced(streamSeq: number, now: Millis): ClaimStep {
    if (this.#state.kind !== "fencing") return NOTHING;
    const { epoch, head, checkpoint, last, claimedAt } = this.#state;
    const warm = this.#takeWarm(last);
    const loading = warm?.loading ?? this.#startLoading(checkpoint, claimedAt, now);
    this.#state = { kind: "loading", epoch, head, streamSeq, loading, reloads: 0, claimedAt };
    const announced: ClaimEffect = { kind: "fenced-others", epoch };
    const after = warm?.last.streamSeq ?? checkpoint?.streamSeq ?? 0;
    if (after >= (last?.streamSeq ?? 0)) return this.#receiveLoaded([announced]);
    return goingOn(announced, { kind: "load", after, through: streamSeq });
  }

  /** Of no use where the log has lost what it holds, or holds something else in its place. */
  #takeWarm(last: StoredRecord | undefined): WarmCopy | undefined {
    const warm = this.#warm;
    this.#warm = undefined;
    if (warm === undefined) return undefined;
    const end = last?.streamSeq ?? 0;
    if (warm.last.streamSeq < end || (warm.last.streamSeq === end && warm.last.id === last?.record.id)) return warm;
    warm.loading.clear();
    return undefined;
  }

  #startLoading(checkpoint: Checkpoint | undefined, claimedAt: UnixMillis, now: Millis): Loading {
    return new Loading(checkpoint, this.#options, this.#deps.budget, { now, wallNow: claimedAt });
  }

  #receiveLoaded(before: readonly ClaimEffect[]): ClaimStep {
    const state = this.#state;
    if (state.kind !== "loading") return NOTHING;
    const { sequencer, backlog, hole } = state.loading.receiveEnd(state.head);
    if (hole !== undefined && state.reloads < RELOADS_MAX) {
      state.loading.clear();
      return goingOn(...before, { kind: "read-checkpoint" });
    }
    const { epoch, streamSeq } = state;
    const effects = hole === undefined ? before : [...before, { kind: "log-hole", hole } as const];
    return { kind: "won", effects, start: { key: this.#key, epoch, streamSeq, sequencer, backlog } };
  }

  #reload(checkpoint: Checkpoint | undefined, now: Millis): ClaimStep {
    const state = this.#state;
    if (state.kind !== "loading") return NOTHING;
    if (checkpoint !== undefined && checkpoint.seq > state.head) return lost("fenced", "a checkpoint covers edits of a later owner");
    this.#state = { ...state, loading: this.#startLoading(checkpoint, state.claimedAt, now), reloads: state.reloads + 1 };
    return goingOn({ kind: "load", after: checkpoint?.streamSeq ?? 0, through: state.streamSeq });
  }
}

const NOTHING: ClaimStep = { kind: "under-way", effects: [] };

function goingOn(...effects: readonly ClaimEffect[]): ClaimStep {
  return { kind: "under-way", effects };
}

function lost(why: "fenced" | "failed", reason: string): ClaimStep {
  return { kind: "lost", why, reason };
}
