/**
 * One room's ownership by this server, from the claim to its end:
 *
 *   claiming -> owning -> releasing -> ended
 *                    \-> handing-over -> ended, or owning again
 *
 * What gateways send before the room can take it is held, within bounds. Whoever finds itself fenced ends at once and
 * forgets. To hand a room over is to stop appending so that another's claim meets a log that stands still. What gateways
 * send meanwhile is held, and they send it to the next owner too: either can go on with it.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { ToOwner } from "../../shared/bus/envelope.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { Epoch, Millis, RoomKey } from "../../shared/ids.ts";
import type { CatchUpRequest } from "../rooms/catch-ups.ts";
import { Claim, type ClaimDeps, type ClaimOptions } from "./claim.ts";
import type { ClaimBeginning, ClaimStep } from "./claim-messages.ts";
import { Doubts } from "./doubts.ts";
import { HeldMessages, type HeldOptions } from "../rooms/held-messages.ts";
import type { End, OwnershipEffect, OwnershipInput } from "./ownership-messages.ts";
import type { AppendOutcome, LastRecord } from "../ports.ts";
import type { RoomEffect } from "../rooms/room-messages.ts";
import { type Pace, Room, type RoomDeps, type RoomOptions } from "../rooms/room.ts";

export type OwnershipOptions = RoomOptions & ClaimOptions & HeldOptions & { readonly idleMsMax: number };

export type OwnershipDeps = RoomDeps & ClaimDeps;

type State =
  | { kind: "claiming"; claim: Claim }
  | { kind: "owning"; room: Room; doubts: Doubts }
  | { kind: "handing-over"; room: Room; doubts: Doubts }
  | { kind: "releasing"; room: Room; unsubscribed: boolean }
  | { kind: "ended" };

const TICK = { kind: "tick" } as const;

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #deps: OwnershipDeps;
  /** Undefined: none. */
  #held: HeldMessages | undefined;
  #state: State;
  /** Somebody has heard of an owner in that epoch. */
  #above = 0 as Epoch;
  /** When the record was sent by which the room is claimed. */
  #claimSentAt: Millis;

  /** The first effect to carry out is "subscribe". */
  constructor(key: RoomKey, options: OwnershipOptions, deps: OwnershipDeps, now: Millis, beginning: ClaimBeginning) {
    this.#options = options;
    this.#deps = deps;
    this.#claimSentAt = now;
    this.#state = { kind: "claiming", claim: new Claim(key, options, deps, now, beginning) };
  }

  get kind(): State["kind"] {
    return this.#state.kind;
  }

  /** It waits for another server to hand the room over, and can be claimed meanwhile like one that nobody has. */
  get isExpecting(): boolean {
    return this.#state.kind === "claiming" && this.#state.claim.isExpecting;
  }

  /** The epoch of the claim, once it stands. */
  get epoch(): Epoch | undefined {
    switch (this.#state.kind) {
      case "claiming":
        return this.#state.claim.epoch;
      case "owning":
      case "handing-over":
      case "releasing":
        return this.#state.room.epoch;
      case "ended":
        return undefined;
      default:
        return assertNever(this.#state);
    }
  }

  /** When its room wants its next tick. */
  get pace(): Pace {
    return "room" in this.#state ? this.#state.room.pace : "never";
  }

  receive(input: OwnershipInput, now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind === "ended") return [];
    switch (input.kind) {
      case "subscribed":
      case "log-read":
      case "log-read-whole":
      case "checkpoint-read":
      case "end-told":
      case "claimed":
        return state.kind === "claiming" ? this.#receiveClaimStep(state.claim.receive(input, now), now) : [];
      case "log-end-read":
        if (state.kind === "claiming") return this.#receiveClaimStep(state.claim.receive(input, now), now);
        return "doubts" in state ? this.#receiveLogEndInDoubt(state, input.last, now) : [];
      case "looked-behind":
        if (!("doubts" in state)) return [];
        return input.isEnd ? this.#confirm(state, now) : [readLogEnd(state)]; // Of a record that is on its way its epoch tells whose it is.
      case "append-settled":
        if (state.kind === "claiming") return this.#receiveClaimStep(state.claim.receive(input, now), now);
        return this.#receiveSettled(state, input.outcome, now);
      case "message":
        return this.#receiveMessage(input.message, input.bytes, now);
      case "doubted":
        return this.#receiveDoubted(input.above, now);
      case "line-back":
        return this.#receiveLineBack(state);
      case "inhabited":
        return state.kind === "owning" ? this.#carry(state.room.receive(input, now), now) : [];
      case "gather":
        return "room" in state ? this.#carry(state.room.receive(input, now), now) : [];
      case "failed":
        return this.#receiveFailure(input.reason);
      case "release":
        return this.#release();
      case "hand-over":
        return this.#handOver(now);
      case "handed-over":
        return state.kind === "handing-over" ? this.#end("handed-over", "another server has taken the room over") : [];
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

  #receiveClaimStep(step: ClaimStep, now: Millis): readonly OwnershipEffect[] {
    switch (step.kind) {
      case "under-way":
        if (step.effects.some(({ kind }) => kind === "append")) this.#claimSentAt = now;
        return step.effects;
      case "lost":
        return this.#end(step.why, step.reason);
      case "won": {
        const room = new Room(step.start, this.#options, this.#deps, now);
        this.#state = { kind: "owning", room, doubts: new Doubts(this.#options, this.#claimSentAt) };
        return [...step.effects, ...this.#receiveHeld(room, now)];
      }
      default:
        return assertNever(step);
    }
  }

  #receiveSettled(state: Extract<State, { room: Room }>, outcome: AppendOutcome, now: Millis): readonly OwnershipEffect[] {
    if (outcome.kind === "fenced") return this.#end("fenced", "another server has claimed the room");
    if ("doubts" in state) state.doubts.appended();
    const effects = this.#carry(state.room.receive({ kind: "appended", streamSeq: outcome.streamSeq }, now), now);
    return state.kind === "handing-over"
      ? [...effects, { kind: "ready-to-hand-over", end: state.room.logEnd }]
      : [...effects, ...this.#endIfReleased()];
  }

  #receiveMessage(message: ToOwner, bytes: number, now: Millis): readonly OwnershipEffect[] {
    if (message.kind === "doubt") return this.#receiveDoubt(undefined, now);
    if (this.#state.kind === "owning" && message.kind === "catch-up-request") this.#state.doubts.answered(now);
    if (this.#state.kind === "owning" || this.#state.kind === "releasing") return this.#carry(this.#state.room.receive(message, now), now);
    this.#held ??= new HeldMessages(this.#options);
    return this.#held.hold(message, bytes) ? [] : [{ kind: "limit-reached", limit: "held-messages" }];
  }

  #receiveHeld(room: Room, now: Millis): readonly OwnershipEffect[] {
    const held = this.#held?.takeAll() ?? [];
    this.#held = undefined;
    return held.flatMap((message) => this.#carry(room.receive(message, now), now));
  }

  /** The room's effects, but that a doubt about the ownership is settled here. */
  #carry(effects: readonly RoomEffect[], now: Millis): readonly OwnershipEffect[] {
    if ("doubts" in this.#state && effects.some(({ kind }) => kind === "append")) this.#state.doubts.appending(now);
    if (effects.every((effect) => effect.kind !== "doubt")) return effects as readonly Exclude<RoomEffect, { kind: "doubt" }>[];
    return effects.flatMap((effect) => (effect.kind === "doubt" ? this.#receiveDoubt(effect.request, now) : [effect]));
  }

  #receiveDoubt(request: CatchUpRequest | undefined, now: Millis): readonly OwnershipEffect[] {
    if (this.#state.kind === "claiming") return this.epoch === undefined ? [] : [{ kind: "confirmed", epoch: this.epoch }];
    if (!("doubts" in this.#state)) return [];
    const { doubts } = this.#state;
    if (request !== undefined && !doubts.add(request)) return [{ kind: "limit-reached", limit: "deferred-catch-ups" }];
    if (!doubts.begin(now)) return [];
    return [lookAt(this.#state)];
  }

  /** An owner in an epoch beyond this one that the log no longer knows of: whoever has heard of it believes no other below it. */
  #receiveDoubted(above: Epoch | undefined, now: Millis): readonly OwnershipEffect[] {
    if (above !== undefined && above > this.#above) this.#above = above;
    const state = this.#state;
    if (state.kind === "claiming") state.claim.raiseAbove(this.#above);
    // Gateways look for an owner that can answer. No look proves that this is one, but a record does: that of a new claim.
    if (state.kind === "owning" && state.doubts.isUnanswered && !state.room.isAppending)
      return this.#end("fenced", "somebody may have heard of a later owner, and only a new claim proves that there is none");
    return this.#receiveDoubt(undefined, now);
  }

  /** Nothing is appended before the log was looked at. What waits in a room that is let go goes to its next owner. */
  #receiveLineBack(state: State): readonly OwnershipEffect[] {
    if (!("room" in state)) return [];
    if (state.kind === "releasing") return state.room.isAppending ? [] : this.#end("released", "the line was lost as the room was let go");
    state.doubts.lineBack();
    state.room.receiveLineBack();
    return [];
  }

  #receiveLogEndInDoubt(state: InDoubt, last: LastRecord | undefined, now: Millis): readonly OwnershipEffect[] {
    const { room, doubts } = state;
    const end = doubts.receiveEnd();
    if (end === undefined) return []; // A claim's, which ended meanwhile.
    if (last === undefined) return this.#end("fenced", "the room's records are gone from the log");
    const { record } = last;
    if (record.kind === "deleted") return [{ kind: "broadcast", message: record }, ...this.#end("deleted", "the room is deleted")];
    // Gateways that it caught up since learn of the later owner from it: there may be nobody else to tell them.
    const told: OwnershipEffect = { kind: "broadcast", message: { kind: "beacon", epoch: epochOf(record), head: headOf(record) } };
    if (isBefore(last, end)) return this.#end("fenced", "the log has lost records of this owner");
    if (epochOf(record) !== room.epoch) return [told, ...this.#end("fenced", "the room's last record in the log is not of this owner")];
    return this.#confirm(state, now);
  }

  #confirm({ room, doubts }: InDoubt, now: Millis): readonly OwnershipEffect[] {
    if (this.#above > room.epoch) return this.#end("fenced", "the log has lost an owner that gateways have heard of, and believe");
    const answers = doubts.settle(now).map((request) => room.answerDoubt(request));
    const again: OwnershipEffect[] = doubts.waiting && doubts.begin(now) ? [readLogEnd({ room, doubts })] : [];
    const confirmed: OwnershipEffect = { kind: "confirmed", epoch: room.epoch };
    return [confirmed, ...this.#carry(answers, now), ...again, ...(doubts.isEndProven ? this.#receiveEndProven(room, now) : [])];
  }

  #receiveEndProven(room: Room, now: Millis): readonly OwnershipEffect[] {
    if (room.isEndProven) return [];
    const effects = this.#carry(room.receiveEndProven(now), now);
    return this.#state.kind === "handing-over" ? [...effects, ...readyIfSettled(room)] : effects;
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

  #handOver(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "owning") return [];
    this.#state = { ...state, kind: "handing-over" };
    state.room.pauseAppends();
    return state.room.isEndProven ? readyIfSettled(state.room) : this.#receiveDoubt(undefined, now);
  }

  /** Goes on, and asks the log at once whether it may. */
  #keep(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "handing-over") return [];
    this.#state = { ...state, kind: "owning" };
    return [
      ...this.#carry(state.room.resumeAppends(now), now),
      ...this.#receiveHeld(state.room, now),
      ...this.#receiveDoubt(undefined, now),
    ];
  }

  #receiveUnsubscribed(): readonly OwnershipEffect[] {
    if (this.#state.kind !== "releasing") return this.#end("failed", "the room's subscription was lost");
    this.#state.unsubscribed = true;
    return this.#endIfReleased();
  }

  #endIfReleased(): readonly OwnershipEffect[] {
    const state = this.#state;
    // What waits behind an end that was not found since the line was lost goes to the next owner.
    if (state.kind !== "releasing" || !state.unsubscribed || (state.room.unacked > 0 && state.room.isEndProven)) return [];
    return this.#end("released", "nobody has used the room for long, or the server is stopping");
  }

  #receiveTick(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    switch (state.kind) {
      case "owning":
        if (state.room.idleMs(now) >= this.#options.idleMsMax) return this.#release();
        return this.#receiveTickOwning(state, now);
      case "handing-over":
        return state.room.isEndProven ? this.#carry(state.room.receive(TICK, now), now) : this.#receiveDoubt(undefined, now);
      case "releasing":
        return this.#carry(state.room.receive(TICK, now), now);
      case "claiming":
        return this.#receiveClaimStep(state.claim.receive(TICK, now), now);
      case "ended":
        return [];
      default:
        return assertNever(state);
    }
  }

  /** A list is made only where there is something in it: it is asked of every room each second. */
  #receiveTickOwning({ room, doubts }: Extract<State, { doubts: Doubts }>, now: Millis): readonly OwnershipEffect[] {
    const effects = this.#carry(room.receive(TICK, now), now);
    return doubts.due(now) ? [...effects, lookAt({ room, doubts })] : effects;
  }

  #end(why: End, reason: string): readonly OwnershipEffect[] {
    const state = this.#state;
    assert(state.kind !== "ended", "an ownership ends once");
    const [wasOwner, wasClaim] = [this.epoch !== undefined, state.kind === "claiming"];
    if (state.kind === "claiming") state.claim.clear();
    else state.room.end();
    this.#state = { kind: "ended" };
    return [{ kind: "ended", why, reason, wasOwner, wasClaim }];
  }
}

type InDoubt = { readonly room: Room; readonly doubts: Doubts };

function readyIfSettled(room: Room): OwnershipEffect[] {
  return room.isAppending ? [] : [{ kind: "ready-to-hand-over", end: room.logEnd }];
}

/** What a later owner begins with stands behind this one's last record, unless that is gone. */
function lookAt({ room, doubts }: InDoubt): OwnershipEffect {
  return doubts.isForEnd ? readLogEnd({ room, doubts }) : { kind: "look-behind", streamSeq: room.logEnd.streamSeq };
}

function readLogEnd({ room, doubts }: InDoubt): OwnershipEffect {
  doubts.askForEnd(room.logEnd);
  return { kind: "read-log-end" };
}

/** The log ends before what it has had, or has something else in its place. */
function isBefore({ record, streamSeq }: LastRecord, end: LogEnd): boolean {
  return streamSeq < end.streamSeq || (streamSeq === end.streamSeq && record.id !== end.id);
}
