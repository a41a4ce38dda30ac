/**
 * One room's presence, independent of its edits: takes the inputs of the room session, keeps the participants, and
 * sends this client's own presence. It repeats nothing and has no timeouts, because the server knows who is present and
 * sends a snapshot after each join. Deterministic. Rules RPR1 to RPR11.
 */

import type { ClientId, Millis } from "../../shared/ids.ts";
import type { Channel, ClientFrame, RoomMode } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import { OwnPresence, type OwnPresenceOptions } from "./own-presence.ts";
import { type ParticipantChanges, type Participant, Participants, type PresenceChange } from "./participants.ts";
import { type Problem, presenceTooLarge } from "../room/problems.ts";
import type { SharedLimits, RoomFrame, RoomSessionInput } from "../room/room-messages.ts";
import type { FrameSendRate } from "../connection/client-rates.ts";

/** This client changes its presence. */
export type ShowInput = { kind: "show"; fields: readonly PresenceField[] };
export type PresenceSessionInput = RoomSessionInput | ShowInput;

/**
 * How the room's presence is sent. `participants`: number counted by the server. `presencePerSecond`: maximum presence
 * frames per second of this client. `shed`: 0, or the level of load shedding.
 */
export type ModeFacts = {
  readonly mode: RoomMode;
  readonly participants: number;
  readonly presencePerSecond: number;
  readonly shed: number;
};

export type PresenceSessionEffect =
  | { kind: "send"; frame: ClientFrame }
  /** A participant entered, left, or changed name, role or rights. */
  | { kind: "emit-participants" }
  | { kind: "emit-presence"; change: PresenceChange }
  | { kind: "emit-mode"; mode: ModeFacts }
  | { kind: "problem"; problem: Problem };

export type PresenceSessionOptions = {
  readonly own: OwnPresenceOptions;
  /**
   * Milliseconds for which participants stay visible without a connection, so that a quick reconnect causes no flicker.
   */
  readonly remembersMs: number;
};

type State =
  | { readonly kind: "out" }
  /** `until`: the participants are removed then. */
  | { readonly kind: "away"; readonly until: Millis }
  | { readonly kind: "in"; readonly channel: Channel; readonly client: ClientId };

export class PresenceSession {
  readonly #options: PresenceSessionOptions;
  readonly #own: OwnPresence;
  readonly #participants = new Participants();
  #state: State = { kind: "out" };
  #client: ClientId | undefined;
  /** The send rate of the last known connection. */
  #sendRate: FrameSendRate | undefined;
  #mode: ModeFacts | undefined;

  constructor(options: PresenceSessionOptions) {
    this.#options = options;
    this.#own = new OwnPresence(options.own);
  }

  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#participants.all;
  }

  /** Undefined before the first MODE frame of the server. */
  get mode(): ModeFacts | undefined {
    return this.#mode;
  }

  /** When a tick is next needed. */
  dueAt(now: Millis): Millis | undefined {
    if (this.#state.kind === "in") return this.#own.dueAt(now);
    return this.#state.kind === "away" ? this.#state.until : undefined;
  }

  receiveInput(input: PresenceSessionInput, now: Millis): PresenceSessionEffect[] {
    const effects: PresenceSessionEffect[] = [];
    switch (input.kind) {
      case "show":
        this.#receiveShow(input.fields, effects);
        return effects; // Sent with the next tick, so that values set in one task go out together.
      case "leave":
        this.#own.giveTurnBack();
        this.#state = { kind: "out" };
        reportChanges(this.#participants.forgetAll(), effects);
        return effects;
      case "connection-lost":
        this.#lose(now);
        return effects;
      case "frame":
        this.#receiveFrame(input.frame, now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      case "connection-open":
        this.#receiveConnection(input, effects);
        return effects;
      case "enter":
      case "edit":
      case "snapshot":
      case "restored":
      case "stored":
      case "keep-failed":
      case "store-lost":
        return effects;
    }
    return effects;
  }

  #receiveConnection({ limits, presenceRate }: SharedLimits, effects: PresenceSessionEffect[]): void {
    if (presenceRate === this.#sendRate) return; // The connection is known already: the room was left and entered again.
    this.#sendRate = presenceRate;
    this.#own.receiveConnection({ rate: presenceRate, bytesMax: limits.presenceBytesMax, fieldsMax: limits.presenceFieldsMax });
    if (this.#own.isTooLarge) effects.push({ kind: "problem", problem: presenceTooLarge(this.#own.bytesMax) });
  }

  #receiveShow(fields: readonly PresenceField[], effects: PresenceSessionEffect[]): void {
    if (!this.#own.set(fields)) effects.push({ kind: "problem", problem: presenceTooLarge(this.#own.bytesMax) });
    reportChanges(this.#participants.selfIs(this.#client, this.#own.values), effects);
  }

  #receiveFrame(frame: RoomFrame, now: Millis, effects: PresenceSessionEffect[]): void {
    switch (frame.type) {
      case "joined":
        this.#state = { kind: "in", channel: frame.channel, client: frame.client };
        this.#client = frame.client;
        reportChanges(this.#participants.selfIs(frame.client, this.#own.values), effects);
        this.#own.sendAgain();
        return this.#send(this.#state, now, effects);
      case "left":
      case "join-refused":
        return this.#lose(now);
      case "presence-delta":
        if (this.#state.kind !== "in") return;
        reportChanges(this.#participants.receiveDelta(frame.delta), effects);
        if (frame.delta.snapshot) this.#own.reconcile(this.#participants.valuesOf(this.#state.client));
        return this.#send(this.#state, now, effects);
      case "presence-again":
        return this.#own.receivePresenceAgain(); // Sent with the next tick.
      case "mode": {
        const { mode, participants, presencePerSecond, shed } = frame;
        this.#mode = { mode, participants, presencePerSecond, shed };
        this.#own.receiveRate(presencePerSecond);
        effects.push({ kind: "emit-mode", mode: this.#mode });
        return;
      }
      default: // Frames about edits.
        return;
    }
  }

  #receiveTick(now: Millis, effects: PresenceSessionEffect[]): void {
    if (this.#state.kind === "in") this.#send(this.#state, now, effects);
    if (this.#state.kind !== "away" || now < this.#state.until) return;
    this.#state = { kind: "out" };
    reportChanges(this.#participants.forgetAll(), effects);
  }

  #lose(now: Millis): void {
    this.#own.giveTurnBack();
    if (this.#state.kind === "in") this.#state = { kind: "away", until: (now + this.#options.remembersMs) as Millis };
  }

  #send({ channel }: State & { kind: "in" }, now: Millis, effects: PresenceSessionEffect[]): void {
    const fields = this.#own.takeDue(now);
    if (fields.length > 0) effects.push({ kind: "send", frame: { type: "presence", channel, fields } });
  }
}

function reportChanges({ roster, entered, changed, left }: ParticipantChanges, effects: PresenceSessionEffect[]): void {
  if (roster) effects.push({ kind: "emit-participants" });
  if (entered.length + changed.length + left.length > 0) effects.push({ kind: "emit-presence", change: { entered, changed, left } });
}
