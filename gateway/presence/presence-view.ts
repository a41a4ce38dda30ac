/**
 * A room's presence as its owner sends it, built from numbered deltas. Deltas after a missing one wait for a snapshot.
 * The presence from a former owner stays until the new owner has sent a snapshot.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { PresenceStatus } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch } from "../../shared/ids.ts";
import { SMALL_MAP_ENTRIES_MAX, SmallMap } from "../../shared/collections/small-map.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import {
  decodeDelta,
  encodeDelta,
  type ParticipantEntry,
  type ParticipantNumber,
  type PresenceDelta,
  type PresenceState,
} from "../../shared/wire/presence.ts";
import { NO_FIELDS, type PresenceFieldList, valueOf, valuesByName, withFields } from "../../shared/presence/shown-fields.ts";

/** An update for the members, in the owner's own bytes wherever possible. */
export type PresenceUpdate = { readonly bytes: Uint8Array; readonly delta: PresenceDelta };

/** A participant with its fields. Changes in place. */
type Seen = { -readonly [Field in keyof ParticipantEntry]: ParticipantEntry[Field] } & { fields: PresenceFieldList };
type Numbered = { readonly epoch: Epoch; readonly number: number; readonly delta: Uint8Array };

/** Maximum number of deltas that are held until the snapshot arrives. The snapshot contains the dropped deltas. */
const EARLY_MAX = 64;

export class PresenceView {
  #epoch = 0 as Epoch;
  /** Number of the last delta that is applied. Undefined: nothing of this epoch is known yet. */
  #number: number | undefined;
  #seen = new SmallMap<ParticipantNumber, Seen>(numberOf);
  /**
   * The newest entry of each client, which may have had other numbers before. Undefined: there are few clients, and
   * each search goes through all of them.
   */
  #byClient: Map<ClientId, Seen> | undefined;
  readonly #early = new LazyMap<number, Uint8Array>();
  #snapshot: Uint8Array | undefined;
  #isBehind = true;
  #isEmpty = true;

  /** The highest epoch received. */
  get epoch(): Epoch {
    return this.#epoch;
  }

  /** Something is missing: the gateway has to request a snapshot. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** No owner has sent a message yet. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  has(client: ClientId): boolean {
    return this.#seenOf(client) !== undefined;
  }

  numberOf(client: ClientId): ParticipantNumber | undefined {
    return this.#seenOf(client)?.number;
  }

  clientOf(number: ParticipantNumber): ClientId | undefined {
    return this.#seen.get(number)?.client;
  }

  shown(client: ClientId, name: string): Uint8Array | undefined {
    const seen = this.#seenOf(client);
    return seen === undefined ? undefined : valueOf(seen.fields, name);
  }

  /** The owner of this epoch has sent no snapshot yet. */
  get isOfEarlierEpoch(): boolean {
    return this.#number === undefined;
  }

  /** All presence as a delta. */
  get everything(): PresenceDelta {
    return snapshotOf(this.#seen);
  }

  /** All presence, encoded once for all members who join before the next change. */
  get snapshot(): Uint8Array {
    return (this.#snapshot ??= encodeDelta(this.everything));
  }

  /** Frees the memory of the snapshot. */
  forgetSnapshot(): void {
    this.#snapshot = undefined;
  }

  /** Messages may have been lost while NATS was out of reach. */
  receiveReconnect(): void {
    this.#isBehind = true;
  }

  /** `new-epoch`: the owner does not know the members of this gateway. */
  receiveEpoch(epoch: Epoch): "known" | "new-epoch" | "past" {
    if (epoch <= this.#epoch) return epoch === this.#epoch ? "known" : "past";
    this.#epoch = epoch;
    this.#number = undefined;
    this.#early.clear();
    this.#isBehind = true;
    return "new-epoch";
  }

  /** `number`: the number of the last delta that the owner of this epoch has sent. */
  receiveHead(number: number): void {
    if (this.#number === undefined || number > this.#number) this.#isBehind = true;
  }

  /** Applies a delta of this epoch, and the deltas that waited for it. */
  receiveDelta({ number, delta }: Omit<Numbered, "epoch">): PresenceUpdate[] {
    if (this.#number !== undefined && number <= this.#number) return [];
    if (this.#early.size < EARLY_MAX) this.#early.set(number, delta.slice());
    const applied = this.#applyEarly();
    if (this.#early.size > 0) this.#isBehind = true;
    return applied;
  }

  /** Applies a snapshot of this epoch. */
  receiveSnapshot({ number, delta: bytes }: Omit<Numbered, "epoch">): PresenceUpdate[] {
    if (this.#number !== undefined && number < this.#number) return []; // The snapshot is older than the deltas that have arrived since.
    const delta = decodeDelta(bytes);
    if (delta === undefined) return [];
    const isFirst = this.#number === undefined;
    const before = this.#seen;
    this.#number = number;
    this.#isBehind = false;
    this.#isEmpty = false;
    this.#snapshot = undefined;
    this.#seen = new SmallMap(numberOf);
    this.#byClient = undefined;
    for (const participant of delta.present) this.#see(seenOf(participant, NO_FIELDS));
    for (const state of delta.states) this.#applyState(state);
    for (const early of this.#early.keys()) if (early <= number) this.#early.delete(early);
    const update = isFirst ? { bytes: this.snapshot, delta } : updateOf(changeBetween(before, this.#seen));
    return [...(update === undefined ? [] : [update]), ...this.#applyEarly()];
  }

  #applyEarly(): PresenceUpdate[] {
    const applied: PresenceUpdate[] = [];
    while (this.#number !== undefined) {
      const bytes = this.#early.get(this.#number + 1);
      if (bytes === undefined) return applied;
      const delta = decodeDelta(bytes);
      this.#early.delete(this.#number + 1);
      if (delta === undefined) {
        this.#isBehind = true; // The delta has a version that this gateway cannot read; the snapshot may be readable.
        return applied;
      }
      this.#number += 1;
      this.#apply(delta);
      applied.push({ bytes, delta });
    }
    return applied;
  }

  #apply({ present, gone, states }: PresenceDelta): void {
    this.#snapshot = undefined;
    for (const number of gone) {
      this.#forget(number);
    }
    for (const participant of present) this.#receivePresent(participant);
    for (const state of states) this.#applyState(state);
  }

  /** A known participant has nearly always become a spectator or an editor: its entry changes in place. */
  #receivePresent(participant: ParticipantEntry): void {
    const { number, client, user, name, canWrite, spectator } = participant;
    const seen = this.#seen.get(number);
    if (seen?.client === client && seen.user === user && seen.name === name) Object.assign(seen, { canWrite, spectator });
    else this.#see(seenOf(participant, seen?.fields ?? NO_FIELDS));
  }

  #see(seen: Seen): void {
    this.#seen.set(seen);
    if (this.#byClient !== undefined) this.#byClient.set(seen.client, seen);
    else if (this.#seen.size > SMALL_MAP_ENTRIES_MAX) this.#byClient = new Map([...this.#seen.values()].map((each) => [each.client, each]));
  }

  #forget(number: ParticipantNumber): void {
    const client = this.clientOf(number);
    if (client !== undefined && this.numberOf(client) === number) this.#byClient?.delete(client);
    this.#seen.delete(number);
  }

  #seenOf(client: ClientId): Seen | undefined {
    return this.#byClient === undefined ? this.#seen.findLast((seen) => seen.client === client) : this.#byClient.get(client);
  }

  #applyState({ number, fields }: PresenceState): void {
    const seen = this.#seen.get(number);
    if (seen === undefined) return;
    seen.fields = withFields(seen.fields, fields);
  }
}

function numberOf({ number }: Seen): ParticipantNumber {
  return number;
}

function seenOf({ number, client, user, name, canWrite, spectator }: ParticipantEntry, fields: PresenceFieldList): Seen {
  return { number, client, user, name, canWrite, spectator, fields };
}

/** Whether the fields of a MODE frame are equal. */
export function isSameStatus(a: PresenceStatus | undefined, b: PresenceStatus): boolean {
  return a !== undefined && a.mode === b.mode && a.presencePerSecond === b.presencePerSecond && a.shed === b.shed;
}

function snapshotOf(seen: SmallMap<ParticipantNumber, Seen>): PresenceDelta {
  const everybody = [...seen.values()];
  const states = everybody.filter(({ fields }) => fields.length > 0).map(({ number, fields }) => ({ number, fields }));
  return { snapshot: true, present: everybody, gone: [], states };
}

const NOTHING = new Uint8Array(0);

/** Numbers are valid in one epoch only. So members receive only the changes that this gateway missed. */
function changeBetween(before: SmallMap<ParticipantNumber, Seen>, after: SmallMap<ParticipantNumber, Seen>): PresenceDelta {
  const gone = [...before.values()].map(numberOf).filter((number) => !after.has(number));
  const present: ParticipantEntry[] = [];
  const states: PresenceState[] = [];
  for (const seen of after.values()) {
    const { number, fields } = seen;
    const was = before.get(number);
    if (was === undefined || !isSameParticipant(was, seen)) present.push(seen);
    const [shownBefore, shownNow] = [valuesByName(was?.fields ?? NO_FIELDS), valuesByName(fields)];
    const changed = [...new Set([...shownNow.keys(), ...shownBefore.keys()])]
      .filter((name) => !isSame(shownBefore.get(name), shownNow.get(name)))
      .map((name) => ({ name, value: shownNow.get(name) ?? NOTHING }));
    if (changed.length > 0) states.push({ number, fields: changed });
  }
  return { snapshot: false, present, gone, states };
}

function updateOf(delta: PresenceDelta): PresenceUpdate | undefined {
  return delta.present.length + delta.gone.length + delta.states.length === 0 ? undefined : { bytes: encodeDelta(delta), delta };
}

function isSameParticipant(a: ParticipantEntry, b: ParticipantEntry): boolean {
  return a.user === b.user && a.name === b.name && a.canWrite === b.canWrite && a.spectator === b.spectator;
}

function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : isSameBytes(a, b);
}
