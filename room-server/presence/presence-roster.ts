/**
 * Who is in a room and what each shows of itself, with what of it has changed since it was last told. A participant is
 * a client id, held by one gateway, or for a moment by two while it reconnects: it is gone when the last lets it go.
 */

import type { Member } from "../../shared/bus/presence-messages.ts";
import { Few } from "../../shared/few.ts";
import type { ClientId, GatewayId } from "../../shared/ids.ts";
import { SeldomMap, SeldomSet } from "../../shared/seldom.ts";
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
 * It is its first holder itself, and nearly always there is no other: a list for each would weigh more than the entry.
 * `member` is the very participant that the room is told of, where it says the same.
 */
type Entry = {
  gateway: GatewayId;
  member: Member;
  /** Those that came after the first. */
  others: readonly Holder[];
  /** Undefined: there are as many as the room takes. */
  participant: Participant | undefined;
  /** The one it speaks through. Its old gateway may go on for a while with what it said before it moved. */
  home: GatewayId | undefined;
  fields: ShownFields;
};

/** Beside a field's name and value, beside a participant's texts: numbers, lengths, bits. */
const FIELD_BYTES = 4;
const PARTICIPANT_BYTES = 32;
const BYTES_PER_CODE_UNIT = 3;

export class Roster {
  readonly #options: RosterOptions;
  readonly #entries = new Few(clientOf);
  /** Those without a number. */
  readonly #waiting = new SeldomSet<Entry>();
  #numbered = 0;
  #lastNumber: ParticipantNumber = 0;
  #bytes = 0;
  readonly #present = new SeldomSet<Entry>();
  #gone: ParticipantNumber[] = [];
  readonly #changed = new SeldomMap<Entry, Set<string>>();

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
    return this.#present.size > 0 || this.#gone.length > 0 || this.#changed.size > 0;
  }

  /** `gateway` has this client, or has it as this from now on. */
  enter(gateway: GatewayId, member: Member): RosterLimit | undefined {
    const { client } = member;
    const known = this.#entries.get(client);
    const entry: Entry = known ?? { gateway, member, others: NONE, participant: undefined, home: undefined, fields: NO_FIELDS };
    if (known === undefined) this.#entries.set(entry);
    else hold(entry, [...heldWithout(entry, gateway), { gateway, member }]);
    const before = this.#bytes;
    const limit = this.#show(entry);
    if (entry.participant === undefined) this.#waiting.add(entry);
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
      if (entry.home === gateway) this.#moveHome(entry, undefined);
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
    if (fresh || entry.home === undefined) this.#moveHome(entry, gateway);
    if (entry.home !== gateway || entry.participant === undefined) return undefined;
    for (const field of fields) if (!this.#setField(entry, field)) limit = "presence-bytes";
    if (this.#bytes < before) this.#showWaiting();
    return limit;
  }

  /** What has changed since the last call. */
  takeNews(): PresenceNews {
    const present = [...this.#present].map(({ participant }) => participant!);
    const states = [...this.#changed].map(([entry, names]) => stateOf(entry, names));
    const news: PresenceNews = { whole: false, present, gone: this.#gone, states };
    this.#present.clear();
    this.#gone = [];
    this.#changed.clear();
    return news;
  }

  /** All there is, told or not: telling it again changes nothing. */
  whole(): PresenceNews {
    const numbered = [...this.#entries.values()].filter(({ participant }) => participant !== undefined);
    const states = numbered
      .filter(({ fields }) => fields.length > 0)
      .map(({ participant, fields }) => ({ number: participant!.number, fields }));
    return { whole: true, present: numbered.map(({ participant }) => participant!), gone: [], states };
  }

  /** A longer name that there are no bytes for is not shown: the one before stays. */
  #show(entry: Entry): RosterLimit | undefined {
    const { participant: before } = entry;
    const members = [entry, ...entry.others].map(({ member }) => member);
    const shown = members.find((member) => !member.spectator) ?? members[0]!;
    const { client, canWrite, spectator } = shown;
    if (before === undefined && this.#numbered >= this.#options.participantsMax) return "participants";
    const bytes = bytesOfParticipant(shown) - (before === undefined ? 0 : bytesOfParticipant(before));
    const fits = bytes <= 0 || this.#bytes + bytes <= this.#options.presenceBytesMax;
    if (before === undefined) {
      if (!fits) return "presence-bytes";
      this.#waiting.delete(entry);
      this.#numbered += 1;
    }
    const { user, name } = fits ? shown : before!;
    if (fits) this.#bytes += bytes;
    if (before?.user !== user || before.name !== name || before.canWrite !== canWrite || before.spectator !== spectator) {
      entry.participant = { number: before?.number ?? (this.#lastNumber += 1), client, user, name, canWrite, spectator };
      this.#present.add(entry);
    }
    if (!fits) return "presence-bytes";
    if (entry.member === shown) entry.member = entry.participant!;
    return undefined;
  }

  /** What it showed where it was before is void: its new gateway tells all that holds. */
  #moveHome(entry: Entry, home: GatewayId | undefined): void {
    if (entry.home !== undefined && entry.home !== home)
      for (const { name } of entry.fields) this.#setField(entry, { name, value: NOTHING });
    entry.home = home;
  }

  #setField(entry: Entry, { name, value }: PresenceField): boolean {
    const before = valueOf(entry.fields, name) ?? NOTHING;
    if (isSame(before, value)) return true;
    const bytes = bytesOf(name, value) - bytesOf(name, before);
    if (bytes > 0 && this.#bytes + bytes > this.#options.presenceBytesMax) return false;
    this.#bytes += bytes;
    entry.fields = withField(entry.fields, name, value);
    const changed = this.#changed.get(entry);
    if (changed === undefined) this.#changed.set(entry, new Set([name]));
    else changed.add(name);
    return true;
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.member.client);
    this.#waiting.delete(entry);
    this.#present.delete(entry);
    this.#changed.delete(entry);
    if (entry.participant === undefined) return;
    this.#bytes -= bytesOfParticipant(entry.participant) + entry.fields.reduce((sum, { name, value }) => sum + bytesOf(name, value), 0);
    this.#gone.push(entry.participant.number);
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

const clientOf = ({ member }: Entry): ClientId => member.client;
const NOTHING = new Uint8Array(0);
const NONE: readonly never[] = [];

function isHeldBy({ gateway: first, others }: Entry, gateway: GatewayId): boolean {
  return first === gateway || others.some((holder) => holder.gateway === gateway);
}

function heldWithout(entry: Entry, gateway: GatewayId): readonly Holder[] {
  return [entry, ...entry.others].filter((holder) => holder.gateway !== gateway);
}

function hold(entry: Entry, [first, ...others]: readonly Holder[]): void {
  entry.gateway = first!.gateway;
  entry.member = first!.member;
  entry.others = others.length === 0 ? NONE : others;
}

function stateOf({ participant, fields }: Entry, names: Iterable<string>): PresenceState {
  return { number: participant!.number, fields: [...names].map((name) => ({ name, value: valueOf(fields, name) ?? NOTHING })) };
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
