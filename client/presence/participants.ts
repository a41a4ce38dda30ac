/**
 * Who is in a room and what each shows, from the news that the server tells. The server's numbers hold for a time
 * only, so everybody goes by their client id, and somebody who comes back keeps their place. Rules PAR1 to PAR7.
 */

import type { ClientId, UserId } from "../../shared/ids.ts";
import { decodePoint, decodeRectangle, decodeSpan, type Point, type Rectangle, type Span } from "../../shared/wire/positions.ts";
import {
  CURSOR,
  type ParticipantNumber,
  type PresenceField,
  type PresenceNews,
  SELECTION,
  type Participant as Told,
  VIEWPORT,
} from "../../shared/wire/presence.ts";
import { decodeValue, sameBytes } from "./presence-values.ts";

/** As the application sees them. Replaced, never altered, when anything of it changes. */
export type Participant = {
  readonly client: ClientId;
  readonly user: UserId;
  readonly name: string;
  /** spectator: has shown no input for a minute. */
  readonly role: "editor" | "spectator";
  readonly canWrite: boolean;
  /** This client itself. */
  readonly self: boolean;
  readonly cursor: Point | undefined;
  readonly selection: Span | undefined;
  readonly viewport: Rectangle | undefined;
  /** The application's own. */
  readonly fields: Readonly<Record<string, unknown>>;
};

/** `changed`: were there and still are, with something else of them. */
export type PresenceChange = {
  readonly entered: readonly ClientId[];
  readonly changed: readonly ClientId[];
  readonly left: readonly ClientId[];
};

/** `roster`: somebody came, went or is another now; not only what is shown has changed. */
export type Merged = PresenceChange & { readonly roster: boolean };

type Values = ReadonlyMap<string, Uint8Array>;
/** What the server told of a number. */
type Entry = { readonly told: Told; readonly values: Values };
/** What was made of it for the application. */
type Shown = Entry & { readonly participant: Participant };

const NO_VALUES: Values = new Map();
const NOBODY: PresenceNews = { whole: true, present: [], gone: [], states: [] };

export class Participants {
  #entries = new Map<ParticipantNumber, Entry>();
  readonly #numbers = new Map<ClientId, ParticipantNumber>();
  readonly #shown = new Map<ClientId, Shown>();
  readonly #all = new Map<ClientId, Participant>();
  #self: ClientId | undefined;
  #ownValues: Values = NO_VALUES;

  /** A view that goes along. */
  get all(): ReadonlyMap<ClientId, Participant> {
    return this.#all;
  }

  /** What the room takes a participant to show. */
  valuesOf(client: ClientId): Values {
    return this.#entryOf(client)?.values ?? NO_VALUES;
  }

  /** This client, and what it shows: known here before the server tells it. */
  selfIs(client: ClientId | undefined, values: Values): Merged {
    const before = this.#self;
    this.#self = client;
    this.#ownValues = values;
    return this.#show(new Set([before, client].filter((one) => one !== undefined)));
  }

  receive({ whole, present, gone, states }: PresenceNews): Merged {
    const touched = new Set<ClientId>();
    if (whole) {
      for (const client of this.#shown.keys()) touched.add(client);
      this.#entries = new Map();
      this.#numbers.clear();
    }
    for (const number of gone) this.#remove(number, touched);
    for (const told of present) this.#tell(told, touched);
    for (const { number, fields } of states) {
      const entry = this.#entries.get(number);
      if (entry === undefined) continue;
      touched.add(entry.told.client);
      this.#entries.set(number, { told: entry.told, values: withFields(entry.values, fields) });
    }
    return this.#show(touched);
  }

  /** Nobody is known to be there any more. */
  forgetAll(): Merged {
    return this.receive(NOBODY);
  }

  /** Somebody new, or what they are now. Under another number they have shown nothing yet. */
  #tell(told: Told, touched: Set<ClientId>): void {
    const { number, client } = told;
    const values = this.#numbers.get(client) === number ? this.valuesOf(client) : NO_VALUES;
    this.#remove(this.#numbers.get(client), touched);
    this.#remove(number, touched);
    touched.add(client);
    this.#entries.set(number, { told, values });
    this.#numbers.set(client, number);
  }

  #remove(number: ParticipantNumber | undefined, touched: Set<ClientId>): void {
    const entry = number === undefined ? undefined : this.#entries.get(number);
    if (entry === undefined) return;
    touched.add(entry.told.client);
    this.#entries.delete(entry.told.number);
    this.#numbers.delete(entry.told.client);
  }

  #entryOf(client: ClientId): Entry | undefined {
    const number = this.#numbers.get(client);
    return number === undefined ? undefined : this.#entries.get(number);
  }

  /** What has become of these. */
  #show(clients: ReadonlySet<ClientId>): Merged {
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
      const shown = shownOf({ told: entry.told, values: self ? this.#ownValues : entry.values }, self, before);
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
    else merged.set(name, value.slice()); // The frame's bytes are not kept.
  }
  return merged;
}

/** The very same as before, if nothing of it is another now. */
function shownOf({ told, values }: Entry, self: boolean, before: Shown | undefined): Shown {
  const { client, user, name, canWrite, spectator } = told;
  const whoever = { client, user, name, role: spectator ? "spectator" : "editor", canWrite, self } as const;
  const sameValues =
    before !== undefined &&
    before.values.size === values.size &&
    [...values].every(([field, value]) => isSame(before.values.get(field), value));
  if (sameValues && sameIdentity(before.participant, whoever)) return before;
  const value = <Value>(field: string, decode: (bytes: Uint8Array) => Value): Value | undefined => {
    const bytes = values.get(field);
    return bytes === undefined ? undefined : decode(bytes);
  };
  const positions = {
    cursor: value(CURSOR, decodePoint),
    selection: value(SELECTION, decodeSpan),
    viewport: value(VIEWPORT, decodeRectangle),
  };
  return { told, values, participant: { ...whoever, ...positions, fields: ownFieldsOf(values, before) } };
}

/** What is the same as before stays the same object. A value that cannot be read is left out. */
function ownFieldsOf(values: Values, before: Shown | undefined): Participant["fields"] {
  const own = ownNamesIn(values);
  const sameAsBefore = (name: string): boolean => isSame(before?.values.get(name), values.get(name)!);
  if (before !== undefined && ownNamesIn(before.values).length === own.length && own.every(sameAsBefore)) return before.participant.fields;
  const decoded = own.map(
    (name) => [name, sameAsBefore(name) ? before?.participant.fields[name] : decodeValue(values.get(name)!)] as const,
  );
  return Object.fromEntries(decoded.filter(([, value]) => value !== undefined)); // Whatever the names are: `__proto__` too becomes a field.
}

function ownNamesIn(values: Values): string[] {
  return [...values.keys()].filter((name) => !name.startsWith("@"));
}

function isSame(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && (a === b || sameBytes(a, b));
}

type Identity = Pick<Participant, "client" | "user" | "name" | "role" | "canWrite" | "self">;

function sameIdentity(a: Identity, b: Identity): boolean {
  return (
    a.client === b.client && a.user === b.user && a.name === b.name && a.role === b.role && a.canWrite === b.canWrite && a.self === b.self
  );
}
