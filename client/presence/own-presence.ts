/**
 * This client's own presence in a room, and the rate at which it is sent. Each field is independent. If a field changes
 * several times before it is sent, only the newest value is sent, and always. All rooms of a connection share its send
 * rate. Rules OPN1 to OPN10.
 */

import type { Millis } from "../../shared/ids.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";
import type { FrameSendRate } from "../connection/client-rates.ts";
import { sameBytes } from "./presence-fields.ts";

export type OwnPresenceOptions = {
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
    const changed = fields.filter(({ name, value }) => !sameBytes(this.#values.get(name) ?? NOTHING, value));
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
      else this.#unsent.delete(name); // It was never sent. An offline client may set and remove any number of such names.
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

  /** Removes fields that the room still shows from an earlier connection. */
  reconcile(shown: ReadonlyMap<string, Uint8Array>): void {
    for (const name of shown.keys()) {
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
