/**
 * Who is in a room and what each shows of itself, with what of it has changed since it was last told. A participant is
 * a client id, held by one gateway, or for a moment by two while it reconnects: it is gone when the last lets it go.
 */

import type { Member } from "../../shared/bus/presence-messages.ts";
import { Few } from "../../shared/few.ts";
import type { ClientId, GatewayId, UserId } from "../../shared/ids.ts";
import { SeldomSet } from "../../shared/seldom.ts";
import { NO_FIELDS, type ShownFields, valueOf, withField } from "../../shared/shown-fields.ts";
import type { Participant, ParticipantNumber, PresenceField, PresenceNews, PresenceState } from "../../shared/wire/presence.ts";

export type RosterOptions = {
  readonly participantsMax: number;
  /** Of all that the room shows, as `whole` says it. */
  readonly presenceBytesMax: number;
};

export type RosterLimit = "participants" | "presence-bytes";

type Holder = { readonly gateway: GatewayId; readonly member: Member };

/**
 * Who has a participant, and what it shows. Nearly all are held by one gateway and show nothing, so those of one gateway
 * share one of these: a room of quiet people would weigh half as much again if each had its own.
 */
type Holding = {
  readonly gateway: GatewayId;
  /** As that gateway says, where the room is told otherwise. */
  readonly member: Member | undefined;
  /** Those that came after the first. */
  readonly others: readonly Holder[];
  /** The one it speaks through. Its old gateway may go on for a while with what it said before it moved. */
  readonly home: GatewayId | undefined;
  readonly fields: ShownFields;
};

/** A participant as the room is told of it, once it has a number. 0: there are as many as the room takes. */
type Entry = { -readonly [Name in keyof Participant]: Participant[Name] } & { holding: Holding };

/** What has changed since it was last told. */
type Changes = { readonly present: Set<Entry>; readonly gone: ParticipantNumber[]; readonly fields: Map<Entry, Set<string>> };

const NO_NUMBER: ParticipantNumber = 0;
/** Gateways of which it is kept what their quiet members share. More have come and gone, or meet in a room where they cost little. */
const USUAL_MAX = 16;

/** Beside a field's name and value, beside a participant's texts: numbers, lengths, bits. */
const FIELD_BYTES = 4;
const PARTICIPANT_BYTES = 32;
const BYTES_PER_CODE_UNIT = 3;

export class Roster {
  readonly #options: RosterOptions;
  readonly #entries = new Few(clientOf);
  /** Those without a number. */
  readonly #waiting = new SeldomSet<Entry>();
  #usual: readonly Holding[] = NONE;
  #numbered = 0;
  #lastNumber: ParticipantNumber = NO_NUMBER;
  #bytes = 0;
  #changes: Changes | undefined;

  constructor(options: RosterOptions) {
    this.#options = options;
  }

  /** How many are there, as the room is told. */
  get size(): number {
    return this.#numbered;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get hasNews(): boolean {
    const changes = this.#changes;
    return changes !== undefined && (changes.present.size > 0 || changes.gone.length > 0 || changes.fields.size > 0);
  }

  /** `gateway` has this client, or has it as this from now on. */
  enter(gateway: GatewayId, member: Member): RosterLimit | undefined {
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

  /** Of these clients the gateway has. */
  heldBy(gateway: GatewayId): ClientId[] {
    return [...this.#entries.values()].filter((entry) => isHeldBy(entry, gateway)).map(clientOf);
  }

  isAnyHeldBy(gateway: GatewayId): boolean {
    for (const entry of this.#entries.values()) if (isHeldBy(entry, gateway)) return true;
    return false;
  }

  /** `fresh`: just said by the client itself, which therefore is where `gateway` is. */
  setFields(gateway: GatewayId, client: ClientId, fields: readonly PresenceField[], fresh: boolean): RosterLimit | undefined {
    const entry = this.#entries.get(client);
    if (entry === undefined || !isHeldBy(entry, gateway)) return undefined;
    const before = this.#bytes;
    let limit: RosterLimit | undefined;
    if (fresh || entry.holding.home === undefined) this.#moveHome(entry, gateway);
    if (entry.holding.home !== gateway || entry.number === NO_NUMBER) return undefined;
    for (const field of fields) if (!this.#setField(entry, field)) limit = "presence-bytes";
    if (this.#bytes < before) this.#showWaiting();
    return limit;
  }

  /** What has changed since the last call. */
  takeNews(): PresenceNews {
    const changes = this.#changes;
    this.#changes = undefined;
    if (changes === undefined) return { whole: false, present: [], gone: [], states: [] };
    const present = [...changes.present].map(participantOf);
    const states = [...changes.fields].map(([entry, names]) => stateOf(entry, names));
    return { whole: false, present, gone: changes.gone, states };
  }

  /** All there is, told or not: telling it again changes nothing. */
  whole(): PresenceNews {
    const numbered = [...this.#entries.values()].filter(({ number }) => number !== NO_NUMBER);
    const states = numbered
      .filter(({ holding }) => holding.fields.length > 0)
      .map(({ number, holding }) => ({ number, fields: holding.fields }));
    return { whole: true, present: numbered.map(participantOf), gone: [], states };
  }

  get #news(): Changes {
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

  /** A longer name that there are no bytes for is not shown: the one before stays. */
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
    if (isNew || isChanged) this.#news.present.add(entry);
    this.#keep(entry, { ...entry.holding, member: isSameMember(first, entry) ? undefined : first });
    return fits ? undefined : "presence-bytes";
  }

  /** What it showed where it was before is void: its new gateway tells all that holds. */
  #moveHome(entry: Entry, home: GatewayId | undefined): void {
    const before = entry.holding;
    if (before.home === home) return;
    if (before.home !== undefined) for (const { name } of before.fields) this.#setField(entry, { name, value: NOTHING });
    entry.holding = { ...entry.holding, home };
  }

  #setField(entry: Entry, { name, value }: PresenceField): boolean {
    const { fields } = entry.holding;
    const before = valueOf(fields, name) ?? NOTHING;
    if (isSame(before, value)) return true;
    const bytes = bytesOf(name, value) - bytesOf(name, before);
    if (bytes > 0 && this.#bytes + bytes > this.#options.presenceBytesMax) return false;
    this.#bytes += bytes;
    entry.holding = { ...entry.holding, fields: withField(fields, name, value) };
    const changed = this.#news.fields.get(entry);
    if (changed === undefined) this.#news.fields.set(entry, new Set([name]));
    else changed.add(name);
    return true;
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.client);
    this.#waiting.delete(entry);
    this.#changes?.present.delete(entry);
    this.#changes?.fields.delete(entry);
    if (entry.number === NO_NUMBER) return;
    this.#bytes -= bytesOfParticipant(entry) + entry.holding.fields.reduce((sum, { name, value }) => sum + bytesOf(name, value), 0);
    this.#news.gone.push(entry.number);
    this.#numbered -= 1;
  }

  /** Bytes have become free. Where a long name does not fit, a short one behind it may. */
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

/** `holding`: a gateway's usual one. */
function entryOf({ client, user, name, canWrite, spectator }: Member, holding: Holding): Entry {
  return { number: NO_NUMBER, client, user, name: oneOf(user, name), canWrite, spectator, holding };
}

/** Who is not named otherwise is called as the user is: the same text is kept once. */
function oneOf(user: UserId, name: string): string {
  return name === user ? user : name;
}

function participantOf({ number, client, user, name, canWrite, spectator }: Entry): Participant {
  return { number, client, user, name, canWrite, spectator };
}

/** As its first gateway says. */
function memberOf(entry: Entry): Member {
  return entry.holding.member ?? entry;
}

function isSameMember(a: Member, b: Member): boolean {
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

/** The entry still is as the room was told: what its first gateway says of it now may be otherwise. */
function hold(entry: Entry, [first, ...others]: readonly Holder[]): void {
  const { gateway, member } = first!;
  entry.holding = { ...entry.holding, gateway, member, others: others.length === 0 ? NONE : others };
}

function stateOf({ number, holding }: Entry, names: Iterable<string>): PresenceState {
  return { number, fields: [...names].map((name) => ({ name, value: valueOf(holding.fields, name) ?? NOTHING })) };
}

function bytesOfParticipant({ client, user, name }: Member): number {
  return PARTICIPANT_BYTES + (client.length + user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOf(name: string, value: Uint8Array): number {
  return value.byteLength === 0 ? 0 : FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}
