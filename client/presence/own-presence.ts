/**
 * What this client shows of itself in a room, and how fast it says so. Each field stands for itself: what changes
 * again before it could be said is said once, as it is then, and the last value always. All rooms on a connection share its pace: what has to wait for its
 * turn stays unsaid until then. Rules OPN1 to OPN10.
 */

import type { Millis } from "../../shared/ids.ts";
import type { FramePace } from "../connection/frame-pace.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";
import { sameBytes } from "./presence-values.ts";

export type OwnPresenceOptions = {
  /** Names and values together. */
  readonly bytesMax: number;
  readonly fieldsMax: number;
  /** Until the server tells how often. */
  readonly perSecond: number;
  readonly viewportsPerSecond: number;
};

/** What the connection takes: of all its rooms, and of what is shown in each. */
export type PresenceLine = { readonly pace: FramePace; readonly bytesMax: number; readonly fieldsMax: number };

const FIELD_OVERHEAD_BYTES = 4;
const NOTHING = new Uint8Array();

export class OwnPresence {
  readonly #options: OwnPresenceOptions;
  #values: ReadonlyMap<string, Uint8Array> = new Map();
  readonly #unsaid = new Set<string>();
  /** What the room may show: said, or shown of an earlier time, and not yet taken back there. */
  readonly #shown = new Set<string>();
  /** Said to be empty since the room was joined; the newest. */
  readonly #takenBack = new Set<string>();
  #perSecond: number;
  #line: PresenceLine | undefined;
  /** On the connection, once it is asked for. */
  #turnAt: Millis | undefined;
  #saidAt: Millis | undefined;
  #viewportSaidAt: Millis | undefined;

  constructor(options: OwnPresenceOptions) {
    this.#options = options;
    this.#perSecond = options.perSecond;
  }

  /** Replaced, never altered. */
  get values(): ReadonlyMap<string, Uint8Array> {
    return this.#values;
  }

  get bytesMax(): number {
    return Math.min(this.#options.bytesMax, this.#line?.bytesMax ?? Infinity);
  }

  /** More is set than the server takes: nothing is said until it is less. */
  get isTooLarge(): boolean {
    return this.#isTooLarge(this.#values);
  }

  /** A line is open, which may take less than the one before. */
  receiveLine(line: PresenceLine): void {
    this.giveTurnBack();
    this.#line = line;
  }

  /** Nothing is to be said for now. */
  giveTurnBack(): void {
    if (this.#turnAt !== undefined) this.#line?.pace.giveBack();
    this.#turnAt = undefined;
  }

  /** Empty values take their fields back. False: it would be too much, and nothing of it was taken. */
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
      if (value.byteLength > 0 || this.#shown.has(name)) this.#unsaid.add(name);
      else this.#unsaid.delete(name); // Never said: offline, there may be any number of such names.
    }
    return true;
  }

  /** The server has heard nothing yet, or has forgotten it. */
  sayAgain(): void {
    this.#takenBack.clear();
    for (const name of this.#values.keys()) this.#unsaid.add(name);
    this.#saidAt = this.#viewportSaidAt = undefined;
  }

  /** It has passed over something that was said too fast, and does not say what. */
  receivePassedOver(): void {
    for (const name of this.#takenBack) this.#shown.add(name);
    for (const name of [...this.#values.keys(), ...this.#takenBack]) this.#unsaid.add(name);
  }

  /** Takes back what the room still shows of an earlier time. */
  reconcile(shown: ReadonlyMap<string, Uint8Array>): void {
    for (const name of shown.keys()) {
      this.#shown.add(name);
      if (!this.#values.has(name)) this.#unsaid.add(name);
    }
  }

  receivePace(perSecond: number): void {
    this.#perSecond = Math.max(1, perSecond);
  }

  /** What is to be said now; nothing if it is too early. */
  takeDue(now: Millis): PresenceField[] {
    const dueAt = this.#ownDueAt(now);
    if (dueAt === undefined) this.giveTurnBack();
    if (dueAt === undefined || now < dueAt) return [];
    this.#turnAt ??= this.#line?.pace.takeTurn(now) ?? now;
    if (now < this.#turnAt) return [];
    this.#turnAt = undefined;
    const names = [...this.#unsaid].filter((name) => name !== VIEWPORT || now >= this.#viewportAt(now));
    for (const name of names) {
      this.#unsaid.delete(name);
      this.#takenBack.delete(name);
      if (this.#values.has(name)) this.#shown.add(name);
      else this.#tookBack(name);
    }
    this.#saidAt = now;
    if (names.includes(VIEWPORT)) this.#viewportSaidAt = now;
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

  /** But for the other rooms on the connection. */
  #ownDueAt(now: Millis): Millis | undefined {
    if (this.#unsaid.size === 0 || this.isTooLarge) return undefined;
    const onlyViewport = this.#unsaid.size === 1 && this.#unsaid.has(VIEWPORT);
    return Math.max(after(this.#saidAt, this.#perSecond, now), onlyViewport ? this.#viewportAt(now) : now) as Millis;
  }

  #isTooLarge(values: ReadonlyMap<string, Uint8Array>): boolean {
    const fieldsMax = Math.min(this.#options.fieldsMax, this.#line?.fieldsMax ?? Infinity);
    return values.size > fieldsMax || sizeOf(values) > this.bytesMax;
  }

  #viewportAt(now: Millis): Millis {
    return after(this.#viewportSaidAt, Math.min(this.#options.viewportsPerSecond, this.#perSecond), now);
  }
}

/** When so many a second allow the next. */
function after(last: Millis | undefined, perSecond: number, now: Millis): Millis {
  return last === undefined ? now : ((last + Math.ceil(1000 / perSecond)) as Millis);
}

function sizeOf(values: ReadonlyMap<string, Uint8Array>): number {
  let bytes = 0;
  for (const [name, value] of values) bytes += name.length + value.byteLength + FIELD_OVERHEAD_BYTES;
  return bytes;
}
