/**
 * The participants of a room and their presence, with the changes since the last delta. A participant is a client id,
 * held by one gateway, or briefly by two during a reconnect. It leaves when the last gateway releases it.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { PresenceMember, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { SmallMap } from "../../shared/collections/small-map.ts";
import type { ClientId, GatewayId, UserId } from "../../shared/ids.ts";
import { LazySet, LazyMap } from "../../shared/collections/lazy-map.ts";
import { NO_FIELDS, type PresenceFieldList, valuesByName, withFields } from "../../shared/presence/shown-fields.ts";
import type { ParticipantEntry, ParticipantNumber, PresenceField, PresenceDelta, PresenceState } from "../../shared/wire/presence.ts";

export type RosterOptions = {
  readonly participantsMax: number;
  /** Maximum bytes of all presence, as in a snapshot. */
  readonly presenceBytesMax: number;
};

export type RosterLimit = "participants" | "presence-bytes";

type Holder = { readonly gateway: GatewayId; readonly member: PresenceMember };

/**
 * The gateways that hold a participant, and its presence. Participants of one gateway without presence share one of
 * these objects. Separate objects would increase a quiet room's memory by half.
 */
type Holding = {
  readonly gateway: GatewayId;
  /** The gateway's description of the member, if the room was sent a different one. */
  readonly member: PresenceMember | undefined;
  /** All gateways except the first. */
  readonly others: readonly Holder[];
  /** The gateway whose messages for this participant are valid. Its former gateway may repeat older messages for some time. */
  readonly home: GatewayId | undefined;
  readonly fields: PresenceFieldList;
};

/** A participant in the room's numbering. 0: the room is full. */
type Entry = { -readonly [Name in keyof ParticipantEntry]: ParticipantEntry[Name] } & { holding: Holding };

/** Changes since the last delta. */
type Changes = { readonly present: Set<Entry>; readonly gone: ParticipantNumber[]; readonly fields: Map<Entry, Set<string>> };

const NO_NUMBER: ParticipantNumber = 0;
/** Number of gateways for which the shared object of quiet members is cached. With more gateways the cost is small. */
const USUAL_MAX = 16;

/** Overhead of a field and of a participant in addition to their texts: numbers, lengths, bits. */
const FIELD_BYTES = 4;
const PARTICIPANT_BYTES = 32;
const BYTES_PER_CODE_UNIT = 3;

export class Roster {
  readonly #options: RosterOptions;
  readonly #entries = new SmallMap(clientOf);
  /** Participants without a number. */
  readonly #waiting = new LazySet<Entry>();
  #usual: readonly Holding[] = NONE;
  #numbered = 0;
  #lastNumber: ParticipantNumber = NO_NUMBER;
  #bytes = 0;
  #changes: Changes | undefined;

  constructor(options: RosterOptions) {
    this.#options = options;
  }

  /** Number of participants that was announced to the room. */
  get size(): number {
    return this.#numbered;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get hasDelta(): boolean {
    const changes = this.#changes;
    return changes !== undefined && (changes.present.size > 0 || changes.gone.length > 0 || changes.fields.size > 0);
  }

  /** `gateway` holds this client, or sends a new description of it. */
  enter(gateway: GatewayId, member: PresenceMember): RosterLimit | undefined {
    const known = this.#entries.get(member.client);
    const entry = known ?? entryOf(member, this.#usualOf(gateway));
    if (known === undefined) this.#entries.set(entry);
    else hold(entry, [...heldWithout(entry, gateway), { gateway, member }]);
    const before = this.#bytes;
    const limit = this.#show(entry);
    if (entry.number === NO_NUMBER) this.#waiting.add(entry);
    if (this.#bytes < before) this.#showWaiting();
    return limit;
  }

  exit(gateway: GatewayId, client: ClientId): void {
    const entry = this.#entries.get(client);
    if (entry === undefined || !isHeldBy(entry, gateway)) return;
    const left = heldWithout(entry, gateway);
    const before = this.#bytes;
    if (left.length === 0) this.#remove(entry);
    else {
      hold(entry, left);
      if (entry.holding.home === gateway) this.#moveHome(entry, undefined);
      this.#show(entry);
    }
    if (this.#bytes < before) this.#showWaiting();
  }

  /** The clients among these that the gateway holds. */
  heldBy(gateway: GatewayId): ClientId[] {
    return [...this.#entries.values()].filter((entry) => isHeldBy(entry, gateway)).map(clientOf);
  }

  isAnyHeldBy(gateway: GatewayId): boolean {
    for (const entry of this.#entries.values()) if (isHeldBy(entry, gateway)) return true;
    return false;
  }

  /** `fresh`: the client has just sent it, so the client is connected to `gateway`. */
  setFields(gateway: GatewayId, client: ClientId, fields: readonly PresenceField[], fresh: boolean): RosterLimit | undefined {
    const entry = this.#entries.get(client);
    if (entry === undefined || !isHeldBy(entry, gateway)) return undefined;
    const before = this.#bytes;
    if (fresh || entry.holding.home === undefined) this.#moveHome(entry, gateway);
    if (entry.holding.home !== gateway || entry.number === NO_NUMBER) return undefined;
    const limit = this.#setShown(entry, fields);
    if (this.#bytes < before) this.#showWaiting();
    return limit;
  }

  /** The changes since the last call. */
  takeDelta(): PresenceDelta {
    const changes = this.#changes;
    this.#changes = undefined;
    if (changes === undefined) return { snapshot: false, present: [], gone: [], states: [] };
    const present = [...changes.present].map(participantOf);
    const states = [...changes.fields].map(([entry, names]) => stateOf(entry, names));
    return { snapshot: false, present, gone: changes.gone, states };
  }

  /** All presence, announced or not: a repeated announcement has no effect. */
  snapshot(): PresenceDelta {
    const numbered = [...this.#entries.values()].filter(({ number }) => number !== NO_NUMBER);
    const states = numbered
      .filter(({ holding }) => holding.fields.length > 0)
      .map(({ number, holding }) => ({ number, fields: holding.fields }));
    return { snapshot: true, present: numbered.map(participantOf), gone: [], states };
  }

  get #delta(): Changes {
    return (this.#changes ??= { present: new Set(), gone: [], fields: new Map() });
  }

  #usualOf(gateway: GatewayId): Holding {
    const known = this.#usual.find((holding) => holding.gateway === gateway);
    if (known !== undefined) return known;
    const usual: Holding = { gateway, member: undefined, others: NONE, home: undefined, fields: NO_FIELDS };
    this.#usual = this.#usual.length < USUAL_MAX ? this.#usual.concat([usual]) : [usual];
    return usual;
  }

  #keep(entry: Entry, holding: Holding): void {
    const { gateway, member, others, home, fields } = holding;
    const isUsual = member === undefined && others.length === 0 && home === undefined && fields.length === 0;
    entry.holding = isUsual ? this.#usualOf(gateway) : holding;
  }

  /** A longer name that exceeds the remaining bytes is not shown, and the old name stays. */
  #show(entry: Entry): RosterLimit | undefined {
    const isNew = entry.number === NO_NUMBER;
    const first = memberOf(entry);
    const members = [first, ...entry.holding.others.map(({ member }) => member)];
    const shown = members.find((member) => !member.spectator) ?? first;
    if (isNew && this.#numbered >= this.#options.participantsMax) return "participants";
    const bytes = bytesOfParticipant(shown) - (isNew ? 0 : bytesOfParticipant(entry));
    const fits = bytes <= 0 || this.#bytes + bytes <= this.#options.presenceBytesMax;
    if (isNew) {
      if (!fits) return "presence-bytes";
      this.#waiting.delete(entry);
      this.#numbered += 1;
      entry.number = this.#lastNumber += 1;
    }
    if (fits) this.#bytes += bytes;
    const { user, name } = fits ? shown : entry;
    const { canWrite, spectator } = shown;
    const isChanged = entry.user !== user || entry.name !== name || entry.canWrite !== canWrite || entry.spectator !== spectator;
    if (isChanged) Object.assign(entry, { user, name: oneOf(user, name), canWrite, spectator });
    if (isNew || isChanged) this.#delta.present.add(entry);
    this.#keep(entry, { ...entry.holding, member: isSameMember(first, entry) ? undefined : first });
    return fits ? undefined : "presence-bytes";
  }

  /** The presence from its former gateway is invalid, because the new gateway sends all valid presence. */
  #moveHome(entry: Entry, home: GatewayId | undefined): void {
    const before = entry.holding;
    if (before.home === home) return;
    if (before.home !== undefined)
      this.#setShown(
        entry,
        before.fields.map(({ name }) => ({ name, value: NOTHING })),
      );
    entry.holding = { ...entry.holding, home };
  }

  /** A larger value that exceeds the remaining bytes is not shown, and the old value stays. */
  #setShown(entry: Entry, fields: readonly PresenceField[]): RosterLimit | undefined {
    const shown = valuesByName(entry.holding.fields);
    const changed: PresenceField[] = [];
    let limit: RosterLimit | undefined;
    for (const field of fields) {
      const { name, value } = field;
      const before = shown.get(name) ?? NOTHING;
      if (isSameBytes(before, value)) continue;
      const bytes = bytesOf(name, value) - bytesOf(name, before);
      if (bytes > 0 && this.#bytes + bytes > this.#options.presenceBytesMax) limit = "presence-bytes";
      else {
        this.#bytes += bytes;
        shown.set(name, value);
        changed.push(field);
      }
    }
    if (changed.length === 0) return limit;
    entry.holding = { ...entry.holding, fields: withFields(entry.holding.fields, changed) };
    const names = this.#delta.fields.get(entry) ?? new Set();
    for (const { name } of changed) names.add(name);
    this.#delta.fields.set(entry, names);
    return limit;
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.client);
    this.#waiting.delete(entry);
    this.#changes?.present.delete(entry);
    this.#changes?.fields.delete(entry);
    if (entry.number === NO_NUMBER) return;
    this.#bytes -= bytesOfParticipant(entry) + entry.holding.fields.reduce((sum, { name, value }) => sum + bytesOf(name, value), 0);
    this.#delta.gone.push(entry.number);
    this.#numbered -= 1;
  }

  /** Bytes have become free. A short name may fit even if a longer one before it does not. */
  #showWaiting(): void {
    for (const entry of this.#waiting) {
      if (this.#numbered >= this.#options.participantsMax || this.#bytes + PARTICIPANT_BYTES > this.#options.presenceBytesMax) return;
      this.#show(entry);
    }
  }
}

const clientOf = ({ client }: Entry): ClientId => client;
const NOTHING = new Uint8Array(0);
const NONE: readonly never[] = [];

/** `holding`: the shared object of the gateway. */
function entryOf({ client, user, name, canWrite, spectator }: PresenceMember, holding: Holding): Entry {
  return { number: NO_NUMBER, client, user, name: oneOf(user, name), canWrite, spectator, holding };
}

/** A participant without a name gets its user id as the name. Both are the same string in memory. */
function oneOf(user: UserId, name: string): string {
  return name === user ? user : name;
}

function participantOf({ number, client, user, name, canWrite, spectator }: Entry): ParticipantEntry {
  return { number, client, user, name, canWrite, spectator };
}

/** The description of its first gateway. */
function memberOf(entry: Entry): PresenceMember {
  return entry.holding.member ?? entry;
}

function isSameMember(a: PresenceMember, b: PresenceMember): boolean {
  return a.user === b.user && a.name === b.name && a.canWrite === b.canWrite && a.spectator === b.spectator;
}

function isHeldBy({ holding }: Entry, gateway: GatewayId): boolean {
  return holding.gateway === gateway || holding.others.some((holder) => holder.gateway === gateway);
}

function heldWithout(entry: Entry, gateway: GatewayId): readonly Holder[] {
  const { holding } = entry;
  const { client, user, name, canWrite, spectator } = memberOf(entry);
  const first: Holder = { gateway: holding.gateway, member: { client, user, name, canWrite, spectator } };
  return [first, ...holding.others].filter((holder) => holder.gateway !== gateway);
}

/** The entry stays as announced, although its first gateway may now describe it differently. */
function hold(entry: Entry, [first, ...others]: readonly Holder[]): void {
  const { gateway, member } = first!;
  entry.holding = { ...entry.holding, gateway, member, others: others.length === 0 ? NONE : others };
}

function stateOf({ number, holding }: Entry, names: Iterable<string>): PresenceState {
  const shown = valuesByName(holding.fields);
  return { number, fields: [...names].map((name) => ({ name, value: shown.get(name) ?? NOTHING })) };
}

function bytesOfParticipant({ client, user, name }: PresenceMember): number {
  return PARTICIPANT_BYTES + (client.length + user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOf(name: string, value: Uint8Array): number {
  return value.byteLength === 0 ? 0 : FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength;
}

type Members = PresenceToOwner & { kind: "members" };
type IncompleteMembers = { readonly version: number; next: number; readonly entered: PresenceMember[]; readonly exited: ClientId[] };

/**
 * Collects members that a gateway announces in several messages. Parts that do not follow one another are dropped: one
 * part was lost, so the gateway must send all again.
 */
export class MemberParts {
  readonly #incomplete = new LazyMap<GatewayId, IncompleteMembers>();

  get isEmpty(): boolean {
    return this.#incomplete.size === 0;
  }

  /** The complete list once its last part is here. */
  receiveMembers(message: Members): Members | "incomplete" | "broken" {
    const { gateway, version, partOf } = message;
    if (partOf === undefined) {
      this.#incomplete.delete(gateway);
      return message;
    }
    const incomplete = partOf.part === 1 ? { version, next: 1, entered: [], exited: [] } : this.#incomplete.get(gateway);
    this.#incomplete.delete(gateway);
    if (incomplete === undefined || incomplete.version !== version || incomplete.next !== partOf.part) return "broken";
    incomplete.next += 1;
    for (const member of message.entered) incomplete.entered.push(member); // As arguments of one call, too many end the process.
    for (const client of message.exited) incomplete.exited.push(client);
    if (incomplete.next > partOf.parts) return { ...message, entered: incomplete.entered, exited: incomplete.exited };
    this.#incomplete.set(gateway, incomplete);
    return "incomplete";
  }

  forget(gateway: GatewayId): void {
    this.#incomplete.delete(gateway);
  }
}
