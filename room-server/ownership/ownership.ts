/**
 * One room's ownership by this server, from the claim to its end:
 *
 *   claiming -> owning -> releasing -> ended
 *                     \-> handing-over -> ended, or owning again
 *
 * Messages from gateways are held, within bounds, until the room can take them. A fenced owner ends at once and forgets
 * the room. In a handover this server stops appending, so that the next claim meets a log that does not move. Gateways
 * send that time's messages to both servers.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { ToOwner } from "../../shared/bus/envelope.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { Epoch, Millis, RoomKey } from "../../shared/ids.ts";
import type { AppendOutcome } from "../ports.ts";
import type { CatchUpRequest } from "../rooms/catch-ups.ts";
import { type TickUrgency, OwnedRoom, type OwnedRoomDeps, type OwnedRoomOptions } from "../rooms/owned-room.ts";
import type { OwnedRoomEffect } from "../rooms/room-messages.ts";
import { RoomClaim, type ClaimDeps, type ClaimOptions } from "./claim.ts";
import { hasLostEnd, OwnershipCheck } from "./ownership-check.ts";
import type { OwnershipEnd, OwnershipEffect, OwnershipInput, ClaimBeginning, ClaimStep } from "./ownership-messages.ts";
import { HeldMessages, type HeldOptions } from "./ownership-messages.ts";

export type OwnershipOptions = OwnedRoomOptions & ClaimOptions & HeldOptions & { readonly idleMsMax: number };
export type OwnershipDeps = OwnedRoomDeps & ClaimDeps;

type State =
  | { kind: "claiming"; claim: RoomClaim }
  | { kind: "owning"; room: OwnedRoom; check: OwnershipCheck }
  | { kind: "handing-over"; room: OwnedRoom; check: OwnershipCheck }
  | { kind: "releasing"; room: OwnedRoom; unsubscribed: boolean }
  | { kind: "ended" };

const TICK = { kind: "tick" } as const;

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #deps: OwnershipDeps;
  /** Undefined: no messages are held. */
  #held: HeldMessages | undefined;
  #state: State;
  /** The highest epoch of an owner that a gateway has reported. */
  #above = 0 as Epoch;
  /** Time at which the epoch record of the claim was sent. */
  #claimSentAt: Millis;

  constructor(key: RoomKey, options: OwnershipOptions, deps: OwnershipDeps, now: Millis, beginning: ClaimBeginning) {
    this.#options = options;
    this.#deps = deps;
    this.#claimSentAt = now;
    this.#state = { kind: "claiming", claim: new RoomClaim(key, options, deps, now, beginning) };
  }

  get kind(): State["kind"] {
    return this.#state.kind;
  }

  /** The room waits for a handover. In the meantime it can be claimed like a room without an owner. */
  get isExpecting(): boolean {
    return this.#state.kind === "claiming" && this.#state.claim.isExpecting;
  }

  /** The epoch of the claim once it is won. */
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

  /** Time at which the room needs its next tick. */
  get tickUrgency(): TickUrgency {
    return "room" in this.#state ? this.#state.room.tickUrgency : "never";
  }

  receiveOwnershipInput(input: OwnershipInput, now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind === "ended") return [];
    switch (input.kind) {
      case "subscribed":
      case "log-read":
      case "log-loaded":
      case "log-advanced":
      case "checkpoint-read":
      case "end-received":
      case "claimed":
        return state.kind === "claiming" ? this.#receiveClaimStep(state.claim.receiveClaimInput(input, now), now) : [];
      case "log-end-read":
        if (state.kind === "claiming") return this.#receiveClaimStep(state.claim.receiveClaimInput(input, now), now);
        return "check" in state ? this.#receiveLogEndForCheck(state, input, now) : [];
      case "log-end-checked":
        if (!("check" in state) || !state.check.awaitsLogEndCheck) return [];
        return input.isEnd ? this.#confirm(state, now) : [readLogEnd(state)]; // The epoch shows whose record was in flight.
      case "append-settled":
        if (state.kind === "claiming") return this.#receiveClaimStep(state.claim.receiveClaimInput(input, now), now);
        return this.#receiveSettled(state, input.outcome, now);
      case "message":
        return this.#receiveMessage(input.message, input.bytes, now);
      case "ownership-questioned":
        return this.#receiveOwnershipQuestion(input.above, now);
      case "reconnected":
        return this.#receiveReconnect(state);
      case "inhabited":
        return state.kind === "owning" ? this.#carry(state.room.receiveRoomInput(input, now), now) : [];
      case "gather":
      case "log-full":
        return "room" in state ? this.#carry(state.room.receiveRoomInput(input, now), now) : [];
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
        return [...(step.effects ?? []), ...this.#end(step.why, step.reason)];
      case "won": {
        const room = new OwnedRoom(step.start, this.#options, this.#deps, now);
        this.#state = { kind: "owning", room, check: new OwnershipCheck(this.#options, this.#claimSentAt) };
        return [...step.effects, ...this.#receiveHeld(room, now)];
      }
      default:
        return assertNever(step);
    }
  }

  #receiveSettled(state: Extract<State, { room: OwnedRoom }>, outcome: AppendOutcome, now: Millis): readonly OwnershipEffect[] {
    if (outcome.kind === "fenced") return this.#end("fenced", "another server has claimed the room");
    if ("check" in state) state.check.appended();
    const effects = this.#carry(state.room.receiveRoomInput({ kind: "appended", streamSeq: outcome.streamSeq }, now), now);
    return state.kind === "handing-over"
      ? [...effects, { kind: "ready-to-hand-over", end: state.room.logEnd }]
      : [...effects, ...this.#endIfReleased()];
  }

  #receiveMessage(message: ToOwner, bytes: number, now: Millis): readonly OwnershipEffect[] {
    if (message.kind === "check-ownership") return this.#receiveCheckRequest(undefined, now);
    if (this.#state.kind === "owning" && message.kind === "catch-up-request") this.#state.check.answered(now);
    if (this.#state.kind === "owning" || this.#state.kind === "releasing")
      return this.#carry(this.#state.room.receiveRoomInput(message, now), now);
    this.#held ??= new HeldMessages(this.#options);
    return this.#held.hold(message, bytes) ? [] : [{ kind: "limit-reached", limit: "held-messages" }];
  }

  #receiveHeld(room: OwnedRoom, now: Millis): readonly OwnershipEffect[] {
    const held = this.#held?.all ?? [];
    this.#held = undefined;
    return held.flatMap((message) => this.#carry(room.receiveRoomInput(message, now), now));
  }

  /** The room's effects. Ownership checks are handled here, all other effects are passed on. */
  #carry(effects: readonly OwnedRoomEffect[], now: Millis): readonly OwnershipEffect[] {
    if ("check" in this.#state && effects.some(({ kind }) => kind === "append")) this.#state.check.appending(now);
    if (effects.every((effect) => effect.kind !== "check-ownership")) return effects;
    return effects.flatMap((effect) => (effect.kind === "check-ownership" ? this.#receiveCheckRequest(effect.request, now) : [effect]));
  }

  #receiveCheckRequest(request: CatchUpRequest | undefined, now: Millis): readonly OwnershipEffect[] {
    if (this.#state.kind === "claiming") return this.epoch === undefined ? [] : [{ kind: "confirmed", epoch: this.epoch }];
    if (!("check" in this.#state)) return [];
    const { check } = this.#state;
    if (request !== undefined && !check.add(request)) return [{ kind: "limit-reached", limit: "deferred-catch-ups" }];
    if (!check.begin(now)) return [];
    return [lookAt(this.#state)];
  }

  /** The log no longer contains that higher epoch, but gateways that know it accept no owner below it. */
  #receiveOwnershipQuestion(above: Epoch | undefined, now: Millis): readonly OwnershipEffect[] {
    if (above !== undefined && above > this.#above) this.#above = above;
    const state = this.#state;
    if (state.kind === "claiming") state.claim.raiseAbove(this.#above);
    // Gateways need an owner that can answer. No read of the log proves that this server is still the owner, but the
    // record of a new claim does.
    if (state.kind === "owning" && state.check.needsNewClaim(now) && !state.room.isAppending)
      return this.#end("fenced", "a gateway may know of a later owner, and only a new claim proves that there is none");
    return this.#receiveCheckRequest(undefined, now);
  }

  /** Appends wait until the log has been checked. Edits that wait in a released room go to its next owner. */
  #receiveReconnect(state: State): readonly OwnershipEffect[] {
    if (!("room" in state)) return [];
    if (state.kind === "releasing")
      return state.room.isAppending ? [] : this.#end("released", "the connection was lost while the room was released");
    state.check.receiveReconnect();
    state.room.receiveReconnect();
    return [];
  }

  #receiveLogEndForCheck(
    state: InDoubt,
    { last, checkpoint }: OwnershipInput & { kind: "log-end-read" },
    now: Millis,
  ): readonly OwnershipEffect[] {
    const { room, check } = state;
    const end = check.receiveEnd();
    if (end === undefined) return []; // The answer is for a claim that has ended.
    if (last === undefined) return this.#end("fenced", "the room's records are gone from the log");
    const { record } = last;
    if (record.kind === "deleted") return [{ kind: "broadcast", message: record }, ...this.#end("deleted", "the room is deleted")];
    // This announcement may be the only message that informs gateways of the later owner.
    const head: OwnershipEffect = { kind: "broadcast", message: { kind: "beacon", epoch: epochOf(record), head: headOf(record) } };
    if (hasLostEnd(last, end, checkpoint)) return this.#end("fenced", "the log has lost records of this owner or of a later one");
    if (epochOf(record) !== room.epoch) return [head, ...this.#end("fenced", "the room's last record in the log is not of this owner")];
    return this.#confirm(state, now);
  }

  #confirm({ room, check }: InDoubt, now: Millis): readonly OwnershipEffect[] {
    if (this.#above > room.epoch) return this.#end("fenced", "the log has lost an owner that gateways know");
    const answers = check.settle(now).map((request) => room.answerOwnershipCheck(request));
    const again: OwnershipEffect[] = check.waiting && check.begin(now) ? [readLogEnd({ room, check })] : [];
    const confirmed: OwnershipEffect = { kind: "confirmed", epoch: room.epoch };
    return [confirmed, ...this.#carry(answers, now), ...again, ...this.#receiveEndProven(room, now)];
  }

  #receiveEndProven(room: OwnedRoom, now: Millis): readonly OwnershipEffect[] {
    if (room.isEndProven) return [];
    const effects = this.#carry(room.receiveEndProven(now), now);
    return this.#state.kind === "handing-over" ? [...effects, ...readyIfSettled(room)] : effects;
  }

  #receiveFailure(reason: string): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind === "releasing") return this.#receiveUnsubscribed(); // The connection is lost, and the subscription with it.
    if (!("check" in state)) return this.#end("failed", reason);
    state.check.drop(); // A failed check is no sign of another owner.
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
    return state.room.isEndProven ? readyIfSettled(state.room) : this.#receiveCheckRequest(undefined, now);
  }

  /** Continues as the owner, and checks the log at once. */
  #keep(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "handing-over") return [];
    this.#state = { ...state, kind: "owning" };
    return [
      ...this.#carry(state.room.resumeAppends(now), now),
      ...this.#receiveHeld(state.room, now),
      ...this.#receiveCheckRequest(undefined, now),
    ];
  }

  #receiveUnsubscribed(): readonly OwnershipEffect[] {
    if (this.#state.kind !== "releasing") return this.#end("failed", "the room's subscription was lost");
    this.#state.unsubscribed = true;
    return this.#endIfReleased();
  }

  #endIfReleased(): readonly OwnershipEffect[] {
    const state = this.#state;
    if (state.kind !== "releasing" || !state.unsubscribed || state.room.hasEditsToAppend) return [];
    return this.#end("released", "the room was unused for its idle time, or the server is stopping");
  }

  #receiveTick(now: Millis): readonly OwnershipEffect[] {
    const state = this.#state;
    switch (state.kind) {
      case "owning":
        if (state.room.idleMs(now) >= this.#options.idleMsMax) return this.#release();
        return this.#receiveTickOwning(state, now);
      case "handing-over":
        return state.room.isEndProven
          ? this.#carry(state.room.receiveRoomInput(TICK, now), now)
          : this.#receiveCheckRequest(undefined, now);
      case "releasing":
        return this.#carry(state.room.receiveRoomInput(TICK, now), now);
      case "claiming":
        return this.#receiveClaimStep(state.claim.receiveClaimInput(TICK, now), now);
      case "ended":
        return [];
      default:
        return assertNever(state);
    }
  }

  /** Every room is ticked each second, so a list is created only if it has entries. */
  #receiveTickOwning({ room, check }: InDoubt, now: Millis): readonly OwnershipEffect[] {
    const effects = this.#carry(room.receiveRoomInput(TICK, now), now);
    return check.due(now) ? [...effects, lookAt({ room, check })] : effects;
  }

  #end(why: OwnershipEnd, reason: string): readonly OwnershipEffect[] {
    const state = this.#state;
    assert(state.kind !== "ended", "an ownership ends once");
    const [epoch, wasClaim] = [this.epoch, state.kind === "claiming"];
    if (state.kind === "claiming") state.claim.clear();
    else state.room.end();
    this.#state = { kind: "ended" };
    return [{ kind: "ended", why, reason, epoch, wasClaim }];
  }
}

type InDoubt = { readonly room: OwnedRoom; readonly check: OwnershipCheck };

function readyIfSettled(room: OwnedRoom): OwnershipEffect[] {
  return room.isAppending ? [] : [{ kind: "ready-to-hand-over", end: room.logEnd }];
}

/** A later owner's first record directly follows this owner's last one, unless the log lost it. */
function lookAt({ room, check }: InDoubt): OwnershipEffect {
  return check.isForEnd ? readLogEnd({ room, check }) : { kind: "check-log-end", streamSeq: room.logEnd.streamSeq };
}

function readLogEnd({ room, check }: InDoubt): OwnershipEffect {
  check.askForEnd(room.logEnd);
  return { kind: "read-log-end" };
}
