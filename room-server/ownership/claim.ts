/**
 * A claim of a room by this server, until it is won or lost:
 *
 *   subscribing -> (expecting ->) reading -> (advancing ->) fencing -> loading -> won
 *   subscribing -> fencing -> won, or reading                             a takeover
 *
 * The claim subscribes before it fences, so that gateways can send edits as soon as they receive the new epoch. The
 * epoch record in the log is the claim: no earlier owner can append after it. With a replica nothing has to be loaded.
 * Before it fences, the claim advances the stream's sequence beyond the checkpoint. Otherwise a log that lost its end
 * would give sequences that the checkpoint covers to new records, and every reader would skip them. In a handover the
 * earlier owner sends the log's end, which counts if the replica has the same, because gateways may send claims too. In a
 * takeover the replica knows the end. The log is then read only if it refuses the epoch record.
 */

import { assertNever } from "../../shared/assert.ts";
import { type Checkpoint, isAheadOfLog, roomPosition } from "../../shared/bus/checkpoint.ts";
import { isSameEnd, type LogEnd } from "../../shared/bus/placement-messages.ts";
import { encodeEpochRecord, epochOf, headOf, type OwnersRecord, type RecordStamp, serverOf } from "../../shared/bus/record.ts";
import type { Epoch, Millis, RoomKey, Seq, ServerId, UnixMillis } from "../../shared/ids.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import { isFirstBehind, type LoadedFrom, Loading, type LoadingOptions } from "../rooms/loading.ts";
import type { Epochs, KnownCheckpoint, OutgoingRecord, DecodedRecord } from "../ports.ts";
import type { ClaimBeginning, ClaimEffect, ClaimInput, ClaimStep } from "./ownership-messages.ts";

/**
 * The state of a server that followed the room: every record up to `last`. The id of `last` is empty if only a
 * checkpoint names it. `isProven`: the log confirmed that the state was complete, and the connection has not been lost
 * since.
 */
export type ReplicaContent = { readonly loading: Loading; readonly last: LogEnd; readonly isProven: boolean };

export type ClaimOptions = LoadingOptions & { readonly claimMsMax: number };
/** `nextStamp`: the mark of the next record. `takeReplica`: removes the replica from the replica set and returns it. */
export type ClaimDeps = {
  readonly budget: BacklogBudget;
  readonly epochs: Epochs;
  readonly nextStamp: () => RecordStamp;
  readonly takeReplica: (room: RoomKey) => ReplicaContent | undefined;
};

/**
 * Number of immediate retries of reading checkpoint and log when they do not match, because the log was trimmed between
 * the two reads.
 */
const RELOADS_AT_ONCE = 3;
/**
 * After the immediate retries, the claim retries at each tick for this time, and is then lost. A stale stream leader
 * may return an old checkpoint: one answered for 14.7 s (docs/adr/0036-reads-may-be-stale.md).
 */
const RELOAD_MS_MAX = 20_000;
/** Time for which a server waits for the handover of a room. */
const EXPECT_MS_MAX = 3_000;

type EndBy = "log" | "copy";

/** The next step after the subscription. */
type Next = { kind: "wait" } | { kind: "read" } | { kind: "fence"; end: LogEnd } | { kind: "fence-behind-copy"; of: ServerId };

/** The epoch record of the claim. */
type Claimed = { readonly epoch: Epoch; readonly head: Seq; readonly recordId: string; readonly claimedAt: UnixMillis };

type State =
  | { kind: "subscribing"; next: Next }
  | { kind: "expecting" }
  | { kind: "reading" }
  /** The log ends below the checkpoint. */
  | { kind: "advancing"; end: LogEnd | undefined; checkpoint: Checkpoint }
  /** `endBy`: the server that sent the log's end. The replica may be behind it. */
  | (Claimed & { kind: "fencing"; checkpoint: Checkpoint | undefined; end: LogEnd | undefined; endBy: EndBy })
  | (Claimed & {
      kind: "loading";
      streamSeq: number;
      loading: Loading;
      reloads: number;
      /** Time since which checkpoint and log do not match. */
      unfitSince?: Millis;
      /** Both are read again at the next tick. */
      waits?: boolean;
    });

export class RoomClaim {
  readonly #key: RoomKey;
  readonly #options: ClaimOptions;
  readonly #deps: ClaimDeps;
  #begun: Millis;
  #replica: ReplicaContent | undefined;
  #hasLookedForReplica = false;
  /** The epoch that a takeover replaces. Undefined in other claims. */
  #replaced: Epoch | undefined;
  /** The last record of the replica or of the checkpoint. The log must still have it. */
  #unfound: LoadedFrom | undefined;
  #above = 0 as Epoch;
  #state: State;

  constructor(key: RoomKey, options: ClaimOptions, deps: ClaimDeps, now: Millis, beginning: ClaimBeginning) {
    this.#key = key;
    this.#options = options;
    this.#deps = deps;
    this.#begun = now;
    this.#state = { kind: "subscribing", next: firstOf(beginning) };
  }

  /** A gateway knows an owner in that epoch, even if the log no longer contains it. */
  raiseAbove(epoch: Epoch): void {
    if (epoch > this.#above) this.#above = epoch;
  }

  /** The claim waits for another server to hand the room over. */
  get isExpecting(): boolean {
    return this.#state.kind === "expecting" || (this.#state.kind === "subscribing" && this.#state.next.kind === "wait");
  }

  /** Defined once the claim is won. */
  get epoch(): Epoch | undefined {
    return this.#state.kind === "loading" ? this.#state.epoch : undefined;
  }

  /** Releases the memory of the loaded data. */
  clear(): void {
    this.#replica?.loading.clear();
    if (this.#state.kind === "loading") this.#state.loading.clear();
  }

  receiveClaimInput(input: ClaimInput, now: Millis): ClaimStep {
    switch (input.kind) {
      case "subscribed":
        return this.#state.kind === "subscribing" ? this.#begin(this.#state.next) : NOTHING;
      case "log-end-read":
        return this.#state.kind === "reading" ? this.#receiveLogEnd(input) : NOTHING;
      case "log-advanced":
        return this.#receiveAdvanced(input);
      case "end-received":
        return this.#receiveClaimed({ kind: "fence", end: input.end }, now);
      case "claimed":
        return this.#receiveClaimed({ kind: "read" }, now);
      case "append-settled":
        return input.outcome.kind === "fenced" ? this.#receiveRefused() : this.#receiveFenced(input.outcome.streamSeq, now);
      case "log-read":
        this.#receiveRecord(input.record, now);
        return NOTHING;
      case "log-loaded":
        return this.#receiveLoaded([], now);
      case "checkpoint-read":
        return this.#reload(input.checkpoint, now);
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #begin(next: Next): ClaimStep {
    switch (next.kind) {
      case "wait":
        this.#state = { kind: "expecting" };
        return goingOn({ kind: "expecting" });
      case "read":
        this.#state = { kind: "reading" };
        return goingOn({ kind: "read-log-end" });
      case "fence":
        this.#lookForReplica();
        // A false head or epoch would become part of the log. No checkpoint has a later epoch than a living owner's.
        return isSameEnd(this.#replica?.last, next.end) ? this.#fence(next.end, undefined, "log") : this.#begin({ kind: "read" });
      case "fence-behind-copy":
        return this.#fenceBehindReplica(next.of);
      default:
        return assertNever(next);
    }
  }

  #receiveLogEnd({ last, checkpoint }: ClaimInput & { kind: "log-end-read" }): ClaimStep {
    // Both states are permanent: even if the log is lost, the room does not start again as a new one.
    if (checkpoint === "deleted" || last?.record.kind === "deleted") return DELETED;
    const end = last && endAt({ record: last.record, streamSeq: last.streamSeq });
    if (this.#replaced !== undefined && (end?.epoch ?? 0) > this.#replaced) return FASTER;
    if (checkpoint === undefined || !isAheadOfLog(checkpoint, end)) return this.#fence(end, checkpoint, "log");
    this.#state = { kind: "advancing", end, checkpoint };
    return goingOn({ kind: "advance-log", past: checkpoint.streamSeq });
  }

  #receiveAdvanced({ missing }: ClaimInput & { kind: "log-advanced" }): ClaimStep {
    if (this.#state.kind !== "advancing") return NOTHING;
    const { end, checkpoint } = this.#state;
    if (missing === 0) return this.#fence(end, checkpoint, "log");
    const reason = `the log ends ${missing} records below the room's checkpoint: it was restored from an earlier copy. Stop the system and run coroom restore`;
    return lost("failed", reason);
  }

  #receiveClaimed(next: Next, now: Millis): ClaimStep {
    if (!this.isExpecting) return NOTHING;
    this.#begun = now;
    if (this.#state.kind === "expecting") return this.#begin(next);
    this.#state = { kind: "subscribing", next };
    return NOTHING;
  }

  #receiveTick(now: Millis): ClaimStep {
    if (this.isExpecting) return now - this.#begun > EXPECT_MS_MAX ? lost("failed", "the room was not handed over after all") : NOTHING;
    // Reading takes longer the more records there are, but each single read has a deadline.
    if (this.#state.kind === "loading") return this.#readAgainIfWaiting(this.#state);
    return now - this.#begun > this.#options.claimMsMax ? lost("failed", "the claim took too long: look at the log's health") : NOTHING;
  }

  /** No checkpoint has a later epoch than the log's last record. */
  #fenceBehindReplica(owner: ServerId): ClaimStep {
    this.#lookForReplica();
    if (this.#replica === undefined) return this.#begin({ kind: "read" });
    this.#replaced = this.#replica.last.epoch;
    if (serverOf(this.#replica.last) !== owner) return FASTER;
    return this.#replica.isProven ? this.#fence(this.#replica.last, undefined, "copy") : this.#begin({ kind: "read" });
  }

  /** The log refused the epoch record at its expected place. */
  #receiveRefused(): ClaimStep {
    if (this.#state.kind !== "fencing" || this.#state.endBy === "log") return lost("fenced", "another server has claimed the room");
    return this.#begin({ kind: "read" });
  }

  #fence(end: LogEnd | undefined, checkpoint: Checkpoint | undefined, endBy: EndBy): ClaimStep {
    const { epoch: before, seq: head } = roomPosition(checkpoint, end);
    const stamp = this.#deps.nextStamp();
    this.#lookForReplica(); // Removed now. Otherwise the claim would later count itself as another owner.
    const known = Math.max(end?.epoch ?? 0, checkpoint?.epoch ?? 0, this.#replica?.last.epoch ?? 0, this.#above);
    const epoch = this.#deps.epochs.after(known as Epoch);
    this.#state = { kind: "fencing", epoch, head, recordId: stamp.id, checkpoint, end, endBy, claimedAt: stamp.time };
    const bytes = encodeEpochRecord({ ...stamp, epoch, head, before });
    const record: OutgoingRecord = { id: stamp.id, bytes, expectedId: end?.id, expectedStreamSeq: end?.streamSeq ?? 0 };
    const report: ClaimEffect[] = end !== undefined && end.head > head ? [{ kind: "edits-lost", after: head, through: end.head }] : [];
    return goingOn(...report, { kind: "append", record, edits: 0 });
  }

  /** Each attempt counts as a warm or a cold claim. */
  #lookForReplica(): void {
    if (!this.#hasLookedForReplica) this.#replica = this.#deps.takeReplica(this.#key);
    this.#hasLookedForReplica = true;
  }

  #receiveFenced(streamSeq: number, now: Millis): ClaimStep {
    if (this.#state.kind !== "fencing") return NOTHING;
    const { epoch, head, recordId, checkpoint, end, claimedAt } = this.#state;
    const warm = this.#takeReplica(end);
    const loading = warm?.loading ?? this.#startLoading(checkpoint, now);
    this.#state = { kind: "loading", epoch, head, recordId, streamSeq, loading, reloads: 0, claimedAt };
    const announced: ClaimEffect = { kind: "fenced-others", epoch };
    const after = warm?.last.streamSeq ?? checkpoint?.streamSeq ?? 0;
    if (after >= (end?.streamSeq ?? 0)) return this.#receiveLoaded([announced], now);
    if (warm === undefined) return goingOn(announced, this.#loadBehind(checkpoint, streamSeq));
    this.#unfound = { kind: "replica", id: warm.last.id };
    return goingOn(announced, { kind: "load", after: after - 1, through: streamSeq });
  }

  #loadBehind(checkpoint: Checkpoint | undefined, through: number): ClaimEffect {
    this.#unfound = checkpoint?.recordId === undefined ? undefined : { kind: "checkpoint", checkpoint };
    const after = checkpoint?.streamSeq ?? 0;
    return { kind: "load", after: this.#unfound === undefined ? after : after - 1, through };
  }

  /**
   * If the log does not return the last record of the replica or of the checkpoint first, it lost or trimmed that
   * record. The loaded data is then invalid.
   */
  #receiveRecord(record: OwnersRecord, now: Millis): void {
    if (this.#state.kind !== "loading") return;
    if (this.#unfound !== undefined && !isFirstBehind(this.#unfound, record)) return;
    this.#unfound = undefined;
    this.#state.loading.receiveRecord(record, { now, wallNow: this.#state.claimedAt });
  }

  /** Undefined: the log lost the replica's last record, or has another record in its place. */
  #takeReplica(end: LogEnd | undefined): ReplicaContent | undefined {
    const warm = this.#replica;
    this.#replica = undefined;
    if (warm === undefined) return undefined;
    const through = end?.streamSeq ?? 0;
    if (warm.last.streamSeq < through || (warm.last.streamSeq === through && warm.last.id === end?.id)) return warm;
    warm.loading.clear();
    return undefined;
  }

  #startLoading(checkpoint: Checkpoint | undefined, now: Millis): Loading {
    return new Loading(checkpoint, this.#options, this.#deps.budget, now);
  }

  #receiveLoaded(before: readonly ClaimEffect[], now: Millis): ClaimStep {
    const state = this.#state;
    if (state.kind !== "loading") return NOTHING;
    const isOff = this.#unfound !== undefined;
    const { sequencer, backlog, epochs, hole } = state.loading.receiveEnd(state.epoch, state.head, now);
    const unfitSince = state.unfitSince ?? now;
    if ((hole !== undefined || isOff) && (state.reloads < RELOADS_AT_ONCE || now - unfitSince < RELOAD_MS_MAX)) {
      state.loading.clear();
      const waits = state.reloads >= RELOADS_AT_ONCE;
      this.#state = { ...state, unfitSince, waits };
      return waits ? goingOn(...before) : goingOn(...before, { kind: "read-checkpoint" });
    }
    if (hole !== undefined) return { ...lost("failed", HOLE_REASON), effects: [{ kind: "log-hole", hole }] };
    const last = { id: state.recordId, streamSeq: state.streamSeq };
    const start = { key: this.#key, epoch: state.epoch, last, sequencer, backlog, epochs };
    return { kind: "won", effects: before, start };
  }

  #readAgainIfWaiting(state: State & { kind: "loading" }): ClaimStep {
    if (state.waits !== true) return NOTHING;
    this.#state = { ...state, waits: false };
    return goingOn({ kind: "read-checkpoint" });
  }

  #reload(checkpoint: KnownCheckpoint, now: Millis): ClaimStep {
    const state = this.#state;
    if (state.kind !== "loading") return NOTHING;
    if (checkpoint === "deleted") return DELETED;
    if (checkpoint !== undefined && checkpoint.seq > state.head) return lost("fenced", "a checkpoint covers edits of a later owner");
    this.#state = { ...state, loading: this.#startLoading(checkpoint, now), reloads: state.reloads + 1 };
    return goingOn(this.#loadBehind(checkpoint, state.streamSeq));
  }
}

const HOLE_REASON =
  "the log lacks edits that no checkpoint covers: wait until a document service has saved the room, or stop the system and run coroom restore";

const NOTHING: ClaimStep = { kind: "under-way", effects: [] };
const FASTER = lost("fenced", "another server was faster to take the room over");

function firstOf(beginning: ClaimBeginning): Next {
  switch (beginning.kind) {
    case "claim":
      return { kind: "read" };
    case "expectation":
      return { kind: "wait" };
    case "takeover":
      return { kind: "fence-behind-copy", of: beginning.from };
    default:
      return assertNever(beginning);
  }
}

/** The log's end, if this record is its last one. */
export function endAt({ record, streamSeq }: DecodedRecord): LogEnd {
  return { id: record.id, streamSeq, epoch: epochOf(record), head: headOf(record) };
}

function goingOn(...effects: readonly ClaimEffect[]): ClaimStep {
  return { kind: "under-way", effects };
}

const DELETED: ClaimStep = { kind: "lost", why: "deleted", reason: "the room is deleted" };

function lost(why: "fenced" | "failed", reason: string): ClaimStep {
  return { kind: "lost", why, reason };
}
