/**
 * One room's presence, independent of its edits: takes the inputs of the room session, keeps the participants, and
 * sends this client's own presence. It repeats nothing and has no timeouts, because the server knows who is present and
 * sends a snapshot after each join. Deterministic. Rules RPR1 to RPR12.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import type { Channel, ClientFrame, RoomMode } from "../../shared/wire/frames.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";
import type { FrameSendRate } from "../connection/client-rates.ts";
import { type Problem, presenceTooLarge } from "../room/problems.ts";
import type { SharedLimits, RoomFrame, RoomSessionInput } from "../room/room-messages.ts";
import { type ParticipantChanges, type Participant, Participants, type PresenceChange } from "./participants.ts";

/** This client changes its presence. */
type ShowInput = { kind: "show"; fields: readonly PresenceField[] };
export type PresenceSessionInput = RoomSessionInput | ShowInput;

/** How the room's presence is sent. */
export type ModeFacts = {
  /** Whether each member receives all presence. */
  readonly mode: RoomMode;
  /** Number of participants when the server sent the mode. The size of the room's `participants` is the present number. */
  readonly participants: number;
  /** Maximum presence frames per second of this client. */
  readonly presencePerSecond: number;
  /** 0, or the level of load shedding: the server drops or delays that much presence. */
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
  /** Milliseconds for which participants stay visible without a connection, so that a quick reconnect causes no flicker. */
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

  /** The time of the next tick. */
  dueAt(now: Millis): Millis | undefined {
    if (this.#state.kind === "in") return this.#own.dueAt(now);
    return this.#state.kind === "away" ? this.#state.until : undefined;
  }

  receiveInput(input: PresenceSessionInput, now: Millis): PresenceSessionEffect[] {
    const effects: PresenceSessionEffect[] = [];
    switch (input.kind) {
      case "show":
        this.#receiveShow(input.fields, effects);
        break; // Sent with the next tick, so that values set in one task go out together.
      case "leave":
        this.#own.giveTurnBack();
        this.#state = { kind: "out" };
        reportChanges(this.#participants.forgetAll(), effects);
        break;
      case "connection-lost":
        this.#lose(now);
        break;
      case "frame":
        this.#receiveFrame(input.frame, now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      case "connection-open":
        this.#receiveConnection(input, effects);
        break;
      case "enter":
      case "edit":
      case "snapshot":
      case "restored":
      case "stored":
      case "keep-failed":
      case "store-lost":
        break;
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
        this.#own.reconcile(this.#participants.valuesOf(this.#state.client)); // The first snapshot may lack what a gateway missed.
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

type OwnPresenceOptions = {
  /** Maximum bytes of all names and values together. */
  readonly bytesMax: number;
  readonly fieldsMax: number;
  /** Presence frames per second until the server sets the rate. */
  readonly perSecond: number;
  readonly viewportsPerSecond: number;
};

/** The connection's limits: the send rate that its rooms share, and the size of one client's presence. */
export type PresenceLimits = { readonly rate: FrameSendRate; readonly bytesMax: number; readonly fieldsMax: number };

const FIELD_OVERHEAD_BYTES = 4;
const NOTHING = new Uint8Array();

/**
 * This client's own presence in a room, and the rate at which it is sent. Each field is independent. If a field changes
 * several times before it is sent, only the newest value is sent, and always. All rooms of a connection share its send
 * rate. Rules OPN1 to OPN11.
 */
export class OwnPresence {
  readonly #options: OwnPresenceOptions;
  #values: ReadonlyMap<string, Uint8Array> = new Map();
  readonly #unsent = new Set<string>();
  /** Fields that the room may show: sent now or by an earlier connection, and not removed there yet. */
  readonly #shown = new Set<string>();
  /** Fields removed since the room was joined; the newest. */
  readonly #takenBack = new Set<string>();
  #perSecond: number;
  #connection: PresenceLimits | undefined;
  /** This room's turn on the connection, once requested. */
  #turnAt: Millis | undefined;
  #sentAt: Millis | undefined;
  #viewportSentAt: Millis | undefined;

  constructor(options: OwnPresenceOptions) {
    this.#options = options;
    this.#perSecond = options.perSecond;
  }

  /** Replaced, never modified. */
  get values(): ReadonlyMap<string, Uint8Array> {
    return this.#values;
  }

  get bytesMax(): number {
    return Math.min(this.#options.bytesMax, this.#connection?.bytesMax ?? Infinity);
  }

  /** More is set than the server accepts: nothing is sent until it is reduced. */
  get isTooLarge(): boolean {
    return this.#isTooLarge(this.#values);
  }

  /** A connection is open. Its limits may be lower than those of the one before. */
  receiveConnection(limits: PresenceLimits): void {
    this.giveTurnBack();
    this.#connection = limits;
  }

  /** Nothing has to be sent for now. */
  giveTurnBack(): void {
    if (this.#turnAt !== undefined) this.#connection?.rate.giveBack();
    this.#turnAt = undefined;
  }

  /** An empty value removes its field. False: too large, and nothing of this call is taken. */
  set(fields: readonly PresenceField[]): boolean {
    const changed = fields.filter(({ name, value }) => !isSameBytes(this.#values.get(name) ?? NOTHING, value));
    const next = new Map(this.#values);
    for (const { name, value } of changed) {
      if (value.byteLength === 0) next.delete(name);
      else next.set(name, value);
    }
    const isLess = this.isTooLarge && sizeOf(next) < sizeOf(this.#values);
    if (this.#isTooLarge(next) && !isLess) return false;
    this.#values = next;
    for (const { name, value } of changed) {
      if (value.byteLength > 0 || this.#shown.has(name)) this.#unsent.add(name);
      else this.#unsent.delete(name); // The field was never sent. An offline client may set and remove any number of such names.
    }
    return true;
  }

  /** The server has received nothing yet, or has discarded it. */
  sendAgain(): void {
    this.#takenBack.clear();
    for (const name of this.#values.keys()) this.#unsent.add(name);
    this.#sentAt = this.#viewportSentAt = undefined;
  }

  /** The server dropped a presence frame that came too fast. The notice does not name the frame. */
  receivePresenceAgain(): void {
    for (const name of this.#takenBack) this.#shown.add(name);
    for (const name of [...this.#values.keys(), ...this.#takenBack]) this.#unsent.add(name);
  }

  /** Removes fields that the room still shows from an earlier connection. The server repeats removals of this one itself. */
  reconcile(shown: ReadonlyMap<string, Uint8Array>): void {
    for (const name of shown.keys()) {
      if (this.#takenBack.has(name)) continue;
      this.#shown.add(name);
      if (!this.#values.has(name)) this.#unsent.add(name);
    }
  }

  receiveRate(perSecond: number): void {
    this.#perSecond = Math.max(1, perSecond);
  }

  /** Returns the fields to send now; none if it is too early. */
  takeDue(now: Millis): PresenceField[] {
    const dueAt = this.#ownDueAt(now);
    if (dueAt === undefined) this.giveTurnBack();
    if (dueAt === undefined || now < dueAt) return [];
    this.#turnAt ??= this.#connection?.rate.takeTurn(now) ?? now;
    if (now < this.#turnAt) return [];
    this.#turnAt = undefined;
    const names = [...this.#unsent].filter((name) => name !== VIEWPORT || now >= this.#viewportAt(now));
    for (const name of names) {
      this.#unsent.delete(name);
      this.#takenBack.delete(name);
      if (this.#values.has(name)) this.#shown.add(name);
      else this.#tookBack(name);
    }
    this.#sentAt = now;
    if (names.includes(VIEWPORT)) this.#viewportSentAt = now;
    return names.map((name) => ({ name, value: this.#values.get(name) ?? NOTHING }));
  }

  #tookBack(name: string): void {
    this.#shown.delete(name);
    this.#takenBack.add(name);
    if (this.#takenBack.size > this.#options.fieldsMax) this.#takenBack.delete(this.#takenBack.values().next().value!);
  }

  dueAt(now: Millis): Millis | undefined {
    const dueAt = this.#ownDueAt(now);
    return dueAt === undefined ? undefined : (Math.max(dueAt, this.#turnAt ?? dueAt) as Millis);
  }

  /** Without regard to the other rooms on the connection. */
  #ownDueAt(now: Millis): Millis | undefined {
    if (this.#unsent.size === 0 || this.isTooLarge) return undefined;
    const onlyViewport = this.#unsent.size === 1 && this.#unsent.has(VIEWPORT);
    return Math.max(after(this.#sentAt, this.#perSecond, now), onlyViewport ? this.#viewportAt(now) : now) as Millis;
  }

  #isTooLarge(values: ReadonlyMap<string, Uint8Array>): boolean {
    const fieldsMax = Math.min(this.#options.fieldsMax, this.#connection?.fieldsMax ?? Infinity);
    return values.size > fieldsMax || sizeOf(values) > this.bytesMax;
  }

  #viewportAt(now: Millis): Millis {
    return after(this.#viewportSentAt, Math.min(this.#options.viewportsPerSecond, this.#perSecond), now);
  }
}

/** The earliest time of the next frame at this rate. */
function after(last: Millis | undefined, perSecond: number, now: Millis): Millis {
  return last === undefined ? now : ((last + Math.ceil(1000 / perSecond)) as Millis);
}

function sizeOf(values: ReadonlyMap<string, Uint8Array>): number {
  let bytes = 0;
  for (const [name, value] of values) bytes += name.length + value.byteLength + FIELD_OVERHEAD_BYTES;
  return bytes;
}
