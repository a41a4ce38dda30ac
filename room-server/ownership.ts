/**
 * One room's ownership by this server, from the claim to its end:
 *
 *   subscribing -> reading -> fencing -> loading -> owning -> releasing -> ended
 *                                                      \-> handing-over -> ended, or owning again
 *
 * It subscribes before it fences, so that gateways' edits have somewhere to go the moment they hear of the new
 * epoch; what comes before the room can take it is held, within bounds. The epoch record in the log is the
 * claim: from then on no earlier owner can append. Whoever finds itself fenced ends at once and forgets.
 *
 * To hand a room over is to stop appending so that another's claim meets a log that stands still. What gateways send
 * meanwhile is held, and they send it to the next owner too: either can go on with it.
 */

import { assert, assertNever } from "../shared/assert.ts";
import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { ToOwner } from "../shared/bus/envelope.ts";
import { encodeEpochRecord, epochOf, headOf, type LogRecord } from "../shared/bus/record.ts";
import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../shared/ids.ts";
import type { BacklogBudget } from "./backlog.ts";
import type { CatchUpRequest } from "./catch-ups.ts";
import { Doubts } from "./doubts.ts";
import { HeldMessages, type HeldOptions } from "./held-messages.ts";
import { type Hole, Loading, type LoadingOptions } from "./loading.ts";
import type { AppendOutcome, StoredRecord } from "./ports.ts";
import { Room, type RoomDeps, type RoomEffect, type RoomOptions } from "./room.ts";

export type OwnershipInput =
  | { kind: "subscribed" }
  | { kind: "log-end-read"; last: StoredRecord | undefined; checkpoint: Checkpoint | undefined }
  | { kind: "append-settled"; outcome: AppendOutcome }
  | { kind: "log-read"; record: LogRecord }
  | { kind: "log-read-whole" }
  | { kind: "checkpoint-read"; checkpoint: Checkpoint | undefined }
  | { kind: "message"; message: ToOwner; bytes: number }
  /** Somebody asks whether it is still the owner. */
  | { kind: "doubted" }
  /** Somebody is in the room, whether there are edits or not. */
  | { kind: "inhabited" }
  /** What it waits for failed. */
  | { kind: "failed"; reason: string }
  | { kind: "release" }
  /** Another server is about to claim the room. */
  | { kind: "hand-over" }
  /** It has. */
  | { kind: "handed-over" }
  /** It may not have. */
  | { kind: "keep" }
  | { kind: "unsubscribed" }
  | { kind: "tick" };

export type OwnershipEffect =
  | Exclude<RoomEffect, { kind: "doubt" }>
  | { kind: "subscribe" }
  | { kind: "read-log-end" }
  | { kind: "read-checkpoint" }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; after: number; through: number }
  /** The claim stands: nobody before can append any more. */
  | { kind: "fenced-others"; epoch: Epoch }
  /** The log was asked: this server is the owner still. */
  | { kind: "confirmed"; epoch: Epoch }
  /** The log could not be asked. */
  | { kind: "unconfirmed"; reason: string }
  | { kind: "log-hole"; hole: Hole }
  | { kind: "unsubscribe" }
  /** The log stands still: the other may claim. */
  | { kind: "ready-to-hand-over" }
  /** `wasOwner`: it had fenced all before it. */
  | { kind: "ended"; why: End; reason: string; wasOwner: boolean };

/** `fenced`: by a later owner that this one did not wait for. */
export type End = "released" | "handed-over" | "fenced" | "failed";

/** What a server that followed the room knows of it already: every record up to `last`. */
export type WarmCopy = { readonly loading: Loading; readonly last: { readonly id: string; readonly streamSeq: number } };

export type OwnershipOptions = RoomOptions & LoadingOptions & HeldOptions & { readonly claimMsMax: number; readonly idleMsMax: number };

/** Times that checkpoint and log are read again when they do not fit together. */
const RELOADS_MAX = 3;

type State =
  | { kind: "subscribing" }
  | { kind: "reading" }
  | { kind: "fencing"; epoch: Epoch; head: Seq; checkpoint: Checkpoint | undefined; last: StoredRecord | undefined; claimedAt: UnixMillis }
  | { kind: "loading"; epoch: Epoch; head: Seq; streamSeq: number; loading: Loading; reloads: number; claimedAt: UnixMillis }
  | { kind: "owning"; room: Room; doubts: Doubts }
  | { kind: "handing-over"; room: Room; doubts: Doubts }
  | { kind: "releasing"; room: Room; unsubscribed: boolean }
  | { kind: "ended" };

export class Ownership {
  readonly #key: RoomKey;
  readonly #options: OwnershipOptions;
  readonly #budget: BacklogBudget;
  readonly #deps: RoomDeps;
  readonly #held: HeldMessages;
  readonly #begun: Millis;
  #warm: WarmCopy | undefined;
  #state: State = { kind: "subscribing" };

  /** The first effect to carry out is "subscribe". */
  constructor(key: RoomKey, options: OwnershipOptions, budget: BacklogBudget, deps: RoomDeps, now: Millis, warm?: WarmCopy) {
    this.#key = key;
    this.#options = options;
    this.#budget = budget;
    this.#deps = deps;
    this.#held = new HeldMessages(options);
    this.#begun = now;
    this.#warm = warm;
  }

  get kind(): State["kind"] {
    return this.#state.kind;
  }

  /** The epoch of the claim, once it stands. */
  get epoch(): Epoch | undefined {
    switch (this.#state.kind) {
      case "loading":
        return this.#state.epoch;
      case "owning":
      case "handing-over":
      case "releasing":
        return this.#state.room.epoch;
      default:
        return undefined;
    }
  }

  /** Whether it has something to do at the next tick. */
  get restless(): boolean {
    return "room" in this.#state && this.#state.room.restless;
  }

  receive(input: OwnershipInput, now: Millis): readonly OwnershipEffect[] {
    if (this.#state.kind === "ended") return [];
    switch (input.kind) {
      case "subscribed":
        this.#state = { kind: "reading" };
        return [{ kind: "read-log-end" }];
      case "log-end-read":
        return "doubts" in this.#state ? this.#receiveLogEndInDoubt(this.#state, input.last) : this.#fence(input.last, input.checkpoint);
      case "append-settled":
        return this.#receiveSettled(input.outcome, now);
      case "log-read":
        if (this.#state.kind === "loading") this.#state.loading.receiveRecord(input.record);
        return [];
      case "log-read-whole":
        return this.#receiveLoaded(now);
      case "checkpoint-read":
        return this.#reload(input.checkpoint, now);
      case "message":
        return this.#receiveMessage(input.message, input.bytes, now);
      case "doubted":
        return this.#receiveDoubt(undefined);
      case "inhabited":
        return this.#state.kind === "owning" ? this.#carry(this.#state.room.receive(input, now)) : [];
      case "failed":
        return this.#receiveFailure(input.reason);
      case "release":
        return this.#release();
      case "hand-over":
        return this.#handOver();
      case "handed-over":
        return this.#state.kind === "handing-over" ? this.#end("handed-over", "another server has taken the room over") : [];
      case "keep":
        return this.#keep(now);
      case "unsubscribed":
        return this.#receiveUnsubscribed();
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #fence(last: StoredRecord | undefined, checkpoint: Checkpoint | undefined): readonly OwnershipEffect[] {
    if (this.#state.kind !== "reading") return [];
    // Above the checkpoint too: should the log ever be lost, the snapshot's seqs and epochs are not given out again.
    const epoch = (Math.max(last === undefined ? 0 : epochOf(last.record), checkpoint?.epoch ?? 0) + 1) as Epoch;
    const head = Math.max(last === undefined ? 0 : headOf(last.record), checkpoint?.seq ?? 0) as Seq;
    const stamp = this.#deps.nextStamp();
    this.#state = { kind: "fencing", epoch, head, checkpoint, last, claimedAt: stamp.time };
    const bytes = encodeEpochRecord({ ...stamp, epoch, head });
    return [{ kind: "append", record: { id: stamp.id, bytes, expectedStreamSeq: last?.streamSeq ?? 0 }, edits: 0 }];
  }

  #receiveSettled(outcome: AppendOutcome, now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (outcome.kind === "fenced") return this.#end("fenced", "another server has claimed the room");
    switch (state.kind) {
      case "fencing": {
        const { epoch, head, checkpoint, last, claimedAt } = state;
        const warm = this.#takeWarm(last);
        const loading = warm?.loading ?? this.#startLoading(checkpoint, claimedAt, now);
        this.#state = { kind: "loading", epoch, head, streamSeq: outcome.streamSeq, loading, reloads: 0, claimedAt };
        const announced: OwnershipEffect = { kind: "fenced-others", epoch };
        const after = warm?.last.streamSeq ?? checkpoint?.streamSeq ?? 0;
        if (after >= (last?.streamSeq ?? 0)) return [announced, ...this.#receiveLoaded(now)];
        return [announced, { kind: "load", after, through: outcome.streamSeq }];
      }
      case "handing-over":
        return [...this.#carry(state.room.receive({ kind: "appended", streamSeq: outcome.streamSeq }, now)), { kind: "ready-to-hand-over" }];
      case "owning":
      case "releasing":
        return [...this.#carry(state.room.receive({ kind: "appended", streamSeq: outcome.streamSeq }, now)), ...this.#endIfReleased()];
      default:
        return [];
    }
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
    return new Loading(checkpoint, this.#options, this.#budget, { now, wallNow: claimedAt });
  }

  #receiveLoaded(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "loading") return [];
    const { sequencer, backlog, hole } = state.loading.receiveEnd(state.head);
    if (hole !== undefined && state.reloads < RELOADS_MAX) {
      state.loading.clear();
      return [{ kind: "read-checkpoint" }];
    }
    const { epoch, streamSeq } = state;
    const room = new Room({ key: this.#key, epoch, streamSeq, sequencer, backlog }, this.#options, this.#deps, now);
    this.#state = { kind: "owning", room, doubts: new Doubts(this.#options) };
    return [...(hole === undefined ? [] : [{ kind: "log-hole", hole } as const]), ...this.#receiveHeld(room, now)];
  }

  #reload(checkpoint: Checkpoint | undefined, now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "loading") return [];
    if (checkpoint !== undefined && checkpoint.seq > state.head) return this.#end("fenced", "a checkpoint covers edits of a later owner");
    this.#state = { ...state, loading: this.#startLoading(checkpoint, state.claimedAt, now), reloads: state.reloads + 1 };
    return [{ kind: "load", after: checkpoint?.streamSeq ?? 0, through: state.streamSeq }];
  }

  #receiveMessage(message: ToOwner, bytes: number, now: Millis): readonly OwnershipEffect[] {
    if (this.#state.kind === "owning" && message.kind === "catch-up-request") this.#state.doubts.answered(now);
    if (this.#state.kind === "owning" || this.#state.kind === "releasing") return this.#carry(this.#state.room.receive(message, now));
    return this.#held.hold(message, bytes) ? [] : [{ kind: "limit-reached", limit: "held-messages" }];
  }

  #receiveHeld(room: Room, now: Millis): readonly OwnershipEffect[] {
    return this.#held.takeAll().flatMap((message) => this.#carry(room.receive(message, now)));
  }

  /** The room's effects, but that a doubt about the ownership is settled here. */
  #carry(effects: readonly RoomEffect[]): readonly OwnershipEffect[] {
    if (effects.every((effect) => effect.kind !== "doubt")) return effects as readonly Exclude<RoomEffect, { kind: "doubt" }>[];
    return effects.flatMap((effect) => (effect.kind === "doubt" ? this.#receiveDoubt(effect.request) : [effect]));
  }

  #receiveDoubt(request: CatchUpRequest | undefined): readonly OwnershipEffect[] {
    if (this.#state.kind === "loading") return [{ kind: "confirmed", epoch: this.#state.epoch }];
    if (!("doubts" in this.#state)) return [];
    const { doubts } = this.#state;
    if (request !== undefined && !doubts.add(request)) return [{ kind: "limit-reached", limit: "deferred-catch-ups" }];
    return doubts.begin() ? [{ kind: "read-log-end" }] : [];
  }

  #receiveLogEndInDoubt({ room, doubts }: Extract<State, { doubts: Doubts }>, last: StoredRecord | undefined): readonly OwnershipEffect[] {
    if (last === undefined) return this.#end("fenced", "the room's records are gone from the log");
    // Gateways that it caught up since learn of the later owner from it: there may be nobody else to tell them.
    const told: OwnershipEffect = { kind: "broadcast", message: { kind: "beacon", epoch: epochOf(last.record), head: headOf(last.record) } };
    if (epochOf(last.record) !== room.epoch) return [told, ...this.#end("fenced", "the room's last record in the log is not of this owner")];
    const answers = doubts.settle().map((request) => room.answerDoubt(request));
    const again: OwnershipEffect[] = doubts.waiting && doubts.begin() ? [{ kind: "read-log-end" }] : [];
    return [{ kind: "confirmed", epoch: room.epoch }, ...this.#carry(answers), ...again];
  }

  #receiveFailure(reason: string): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind === "releasing") return this.#receiveUnsubscribed(); // The connection is gone, and the subscription with it.
    if (!("doubts" in state)) return this.#end("failed", reason);
    state.doubts.drop(); // Nothing speaks against this owner yet.
    return [{ kind: "unconfirmed", reason }];
  }

  #release(): readonly OwnershipEffect[] {
    if (this.#state.kind === "releasing" || this.#state.kind === "handing-over") return [];
    if (this.#state.kind !== "owning") return this.#end("failed", "the server is stopping");
    this.#state = { kind: "releasing", room: this.#state.room, unsubscribed: false };
    return [{ kind: "unsubscribe" }];
  }

  #handOver(): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "owning") return [];
    this.#state = { ...state, kind: "handing-over" };
    state.room.pauseAppends();
    return state.room.isAppending ? [] : [{ kind: "ready-to-hand-over" }];
  }

  /** Goes on, and asks the log at once whether it may. */
  #keep(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "handing-over") return [];
    this.#state = { ...state, kind: "owning" };
    return [...this.#carry(state.room.resumeAppends(now)), ...this.#receiveHeld(state.room, now), ...this.#receiveDoubt(undefined)];
  }

  #receiveUnsubscribed(): readonly OwnershipEffect[] {
    if (this.#state.kind !== "releasing") return this.#end("failed", "the room's subscription was lost");
    this.#state.unsubscribed = true;
    return this.#endIfReleased();
  }

  #endIfReleased(): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "releasing" || !state.unsubscribed || state.room.unacked > 0) return [];
    return this.#end("released", "nobody has used the room for long, or the server is stopping");
  }

  #receiveTick(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    switch (state.kind) {
      case "owning":
        if (state.room.idleMs(now) >= this.#options.idleMsMax) return this.#release();
        return [...this.#carry(state.room.receive({ kind: "tick" }, now)), ...(state.doubts.due(now) ? [{ kind: "read-log-end" } as const] : [])];
      case "handing-over":
      case "releasing":
        return this.#carry(state.room.receive({ kind: "tick" }, now));
      case "subscribing":
      case "reading":
      case "fencing":
        return now - this.#begun > this.#options.claimMsMax ? this.#end("failed", "the claim took too long: look at the log's health") : [];
      case "loading": // Takes as long as there is to read; each read has a deadline of its own.
      case "ended":
        return [];
      default:
        return assertNever(state);
    }
  }

  #end(why: End, reason: string): readonly OwnershipEffect[] {
    const state = this.#state;
    assert(state.kind !== "ended", "an ownership ends once");
    const wasOwner = this.epoch !== undefined;
    this.#warm?.loading.clear();
    if (state.kind === "loading") state.loading.clear();
    if ("room" in state) state.room.end();
    this.#state = { kind: "ended" };
    return [{ kind: "ended", why, reason, wasOwner }];
  }
}
