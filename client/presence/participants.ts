/**
 * The participants of a room and their fields, from the server's presence deltas. The server's participant numbers are
 * temporary, so participants are identified by client id, and one that returns keeps its entry. Rules PAR1 to PAR7.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { ClientId, UserId } from "../../shared/ids.ts";
import { decodePoint, decodeRectangle, decodeSpan, type Point, type Rectangle, type TextSpan } from "../../shared/wire/positions.ts";
import {
  CURSOR,
  type ParticipantNumber,
  type PresenceField,
  type PresenceDelta,
  SELECTION,
  type ParticipantEntry as Announced,
  VIEWPORT,
} from "../../shared/wire/presence.ts";
import { decodeValue } from "./presence-fields.ts";

/** A participant of the room. The object is replaced, never modified, when something changes. */
export type Participant = {
  /** Client id of the participant: one for each page of a user. */
  readonly client: ClientId;
  /** The user, as the token names them. */
  readonly user: UserId;
  /** Name to show, from the token. May be empty. */
  readonly name: string;
  /** spectator: no input for a minute. */
  readonly role: "editor" | "spectator";
  /** Whether it may send edits. */
  readonly canWrite: boolean;
  /** True: this client. */
  readonly self: boolean;
  /** Undefined: it shows none, or it is too far away in a large room. */
  readonly cursor: Point | undefined;
  /** Undefined: it shows none. */
  readonly selection: TextSpan | undefined;
  /** Undefined: it shows none. */
  readonly viewport: Rectangle | undefined;
  /** Fields that the application defines. */
  readonly fields: Readonly<Record<string, unknown>>;
};

/** Participants whose presence changed, by client id. */
export type PresenceChange = {
  /** Participants that entered. */
  readonly entered: readonly ClientId[];
  /** Participants that stayed and changed a field, name, role or right. */
  readonly changed: readonly ClientId[];
  /** Participants that left. `participants` does not contain them any more. */
  readonly left: readonly ClientId[];
};

/** `roster`: a participant entered, left, or changed name, role or rights. */
export type ParticipantChanges = PresenceChange & { readonly roster: boolean };

type Values = ReadonlyMap<string, Uint8Array>;
/** The server's data of a participant number. */
type Entry = { readonly announced: Announced; readonly values: Values };
/** The participant that the application received for it. */
type Shown = Entry & { readonly participant: Participant };

const NO_VALUES: Values = new Map();
const NOBODY: PresenceDelta = { snapshot: true, present: [], gone: [], states: [] };

export class Participants {
  #entries = new Map<ParticipantNumber, Entry>();
  readonly #numbers = new Map<ClientId, ParticipantNumber>();
  readonly #shown = new Map<ClientId, Shown>();
  readonly #all = new Map<ClientId, Participant>();
  #self: ClientId | undefined;
  #ownValues: Values = NO_VALUES;

  /** A live view of the room. */
  get all(): ReadonlyMap<ClientId, Participant> {
    return this.#all;
  }

  /** The fields that the room has of a participant. */
  valuesOf(client: ClientId): Values {
    return this.#entryOf(client)?.values ?? NO_VALUES;
  }

  /** This client and its own fields, which are known before the server sends them. */
  selfIs(client: ClientId | undefined, values: Values): ParticipantChanges {
    const before = this.#self;
    this.#self = client;
    this.#ownValues = values;
    return this.#show(new Set([before, client].filter((one) => one !== undefined)));
  }

  receiveDelta({ snapshot, present, gone, states }: PresenceDelta): ParticipantChanges {
    const touched = new Set<ClientId>();
    if (snapshot) {
      for (const client of this.#shown.keys()) touched.add(client);
      this.#entries = new Map();
      this.#numbers.clear();
    }
    for (const number of gone) this.#remove(number, touched);
    for (const announced of present) this.#receiveParticipant(announced, touched);
    for (const { number, fields } of states) {
      const entry = this.#entries.get(number);
      if (entry === undefined) continue;
      touched.add(entry.announced.client);
      this.#entries.set(number, { announced: entry.announced, values: withFields(entry.values, fields) });
    }
    return this.#show(touched);
  }

  /** Removes all participants. */
  forgetAll(): ParticipantChanges {
    return this.receiveDelta(NOBODY);
  }

  /** A participant entered or changed. With a new number it has no fields yet. */
  #receiveParticipant(announced: Announced, touched: Set<ClientId>): void {
    const { number, client } = announced;
    const values = this.#numbers.get(client) === number ? this.valuesOf(client) : NO_VALUES;
    this.#remove(this.#numbers.get(client), touched);
    this.#remove(number, touched);
    touched.add(client);
    this.#entries.set(number, { announced, values });
    this.#numbers.set(client, number);
  }

  #remove(number: ParticipantNumber | undefined, touched: Set<ClientId>): void {
    const entry = number === undefined ? undefined : this.#entries.get(number);
    if (entry === undefined) return;
    touched.add(entry.announced.client);
    this.#entries.delete(entry.announced.number);
    this.#numbers.delete(entry.announced.client);
  }

  #entryOf(client: ClientId): Entry | undefined {
    const number = this.#numbers.get(client);
    return number === undefined ? undefined : this.#entries.get(number);
  }

  /** Computes the changes of these participants. */
  #show(clients: ReadonlySet<ClientId>): ParticipantChanges {
    const [entered, changed, left]: [ClientId[], ClientId[], ClientId[]] = [[], [], []];
    let roster = false;
    for (const client of clients) {
      const entry = this.#entryOf(client);
      const before = this.#shown.get(client);
      if (entry === undefined) {
        this.#all.delete(client);
        if (this.#shown.delete(client)) left.push(client);
        continue;
      }
      const self = client === this.#self;
      const shown = shownOf({ announced: entry.announced, values: self ? this.#ownValues : entry.values }, self, before);
      if (shown === before) continue;
      (before === undefined ? entered : changed).push(client);
      roster ||= before !== undefined && !sameIdentity(before.participant, shown.participant);
      this.#shown.set(client, shown);
      this.#all.set(client, shown.participant);
    }
    return { entered, changed, left, roster: roster || entered.length + left.length > 0 };
  }
}

function withFields(values: Values, fields: readonly PresenceField[]): Values {
  const merged = new Map(values);
  for (const { name, value } of fields) {
    if (value.byteLength === 0) merged.delete(name);
    else merged.set(name, value.slice()); // Copied, so that the frame's bytes are not retained.
  }
  return merged;
}

/** Returns the previous object if nothing has changed. */
function shownOf({ announced, values }: Entry, self: boolean, before: Shown | undefined): Shown {
  const { client, user, name, canWrite, spectator } = announced;
  const identity = { client, user, name, role: spectator ? "spectator" : "editor", canWrite, self } as const;
  const sameValues =
    before !== undefined &&
    before.values.size === values.size &&
    [...values].every(([field, value]) => isSame(before.values.get(field), value));
  if (sameValues && sameIdentity(before.participant, identity)) return before;
  const value = <Value>(field: string, decode: (bytes: Uint8Array) => Value): Value | undefined => {
    const bytes = values.get(field);
    return bytes === undefined ? undefined : decode(bytes);
  };
  const positions = {
    cursor: value(CURSOR, decodePoint),
    selection: value(SELECTION, decodeSpan),
    viewport: value(VIEWPORT, decodeRectangle),
  };
  return { announced, values, participant: { ...identity, ...positions, fields: ownFieldsOf(values, before) } };
}

/** Unchanged values stay the same objects. A value that cannot be decoded is left out. */
function ownFieldsOf(values: Values, before: Shown | undefined): Participant["fields"] {
  const own = ownNamesIn(values);
  const sameAsBefore = (name: string): boolean => isSame(before?.values.get(name), values.get(name)!);
  if (before !== undefined && ownNamesIn(before.values).length === own.length && own.every(sameAsBefore)) return before.participant.fields;
  const decoded = own.map(
    (name) => [name, sameAsBefore(name) ? before?.participant.fields[name] : decodeValue(values.get(name)!)] as const,
  );
  return Object.fromEntries(decoded.filter(([, value]) => value !== undefined)); // Safe for any name: `__proto__` becomes an ordinary field.
}

function ownNamesIn(values: Values): string[] {
  return [...values.keys()].filter((name) => !name.startsWith("@"));
}

function isSame(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && (a === b || isSameBytes(a, b));
}

type Identity = Pick<Participant, "client" | "user" | "name" | "role" | "canWrite" | "self">;

function sameIdentity(a: Identity, b: Identity): boolean {
  return (
    a.client === b.client && a.user === b.user && a.name === b.name && a.role === b.role && a.canWrite === b.canWrite && a.self === b.self
  );
}
