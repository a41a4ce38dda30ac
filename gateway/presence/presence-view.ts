/**
 * The presence of a room as its owner tells it: everybody, and all that each shows, from numbered news. News after a
 * missing one wait a moment for the whole; what an owner before said is shown until the new one has said the whole.
 */

import type { Member, Standing } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch } from "../../shared/ids.ts";
import { FEW, Few } from "../../shared/few.ts";
import { SeldomMap } from "../../shared/seldom.ts";
import {
  decodeNews,
  encodeNews,
  type Participant,
  type ParticipantNumber,
  type PresenceNews,
  type PresenceState,
} from "../../shared/wire/presence.ts";
import { NO_FIELDS, type ShownFields, valueOf, withField } from "../../shared/shown-fields.ts";

/** What the members are to be told: the owner's own bytes wherever possible. */
export type Tidings = { readonly bytes: Uint8Array; readonly news: PresenceNews };

/** One object with what it shows, that changes in place: there are very many. */
type Seen = { -readonly [Field in keyof Participant]: Participant[Field] } & { fields: ShownFields };
type Numbered = { readonly epoch: Epoch; readonly number: number; readonly news: Uint8Array };

/** News held while the whole is awaited; with more missing it says it all anyway. */
const EARLY_MAX = 64;

export class PresenceView {
  #epoch = 0 as Epoch;
  /** The last of the news that is in here. Undefined: nothing of this epoch is known yet. */
  #number: number | undefined;
  #seen = new Few<ParticipantNumber, Seen>(numberOf);
  /** Of a client that has come under another number, the newest. Undefined: there are few, which are looked through. */
  #byClient: Map<ClientId, Seen> | undefined;
  readonly #early = new SeldomMap<number, Uint8Array>();
  #whole: Uint8Array | undefined;
  #isBehind = true;
  #isEmpty = true;

  /** The highest heard of. */
  get epoch(): Epoch {
    return this.#epoch;
  }

  /** Something is missing: the whole is to be asked for. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Nothing is known yet, of this owner or one before. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  get participants(): number {
    return this.#seen.size;
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

  /** Nothing that this epoch's owner said is known yet. */
  get isOfThePast(): boolean {
    return this.#number === undefined;
  }

  /** Everything. */
  get everything(): PresenceNews {
    return wholeOf(this.#seen);
  }

  /** Everything, written once for as long as nothing changes and people come. */
  get whole(): Uint8Array {
    return (this.#whole ??= encodeNews(this.everything));
  }

  /** Nobody may come for hours. */
  letGoOfWhole(): void {
    this.#whole = undefined;
  }

  /** The texts are taken from a member of here, who has them already, where they are the same. */
  share({ client, user, name }: Member): void {
    const seen = this.#seenOf(client);
    if (seen?.user !== user || seen.name !== name) return;
    Object.assign(seen, { client, user, name });
  }

  /** What was said meanwhile may have been missed. */
  receiveDoubt(): void {
    this.#isBehind = true;
  }

  /** `new-epoch`: its owner knows nothing of who is here. */
  receiveEpoch(epoch: Epoch): "known" | "new-epoch" | "past" {
    if (epoch <= this.#epoch) return epoch === this.#epoch ? "known" : "past";
    this.#epoch = epoch;
    this.#number = undefined;
    this.#early.clear();
    this.#isBehind = true;
    return "new-epoch";
  }

  /** How far this epoch's owner has come. */
  receiveHead(number: number): void {
    if (this.#number === undefined || number > this.#number) this.#isBehind = true;
  }

  /** News of this epoch, and what had waited for them. */
  receiveNews({ number, news }: Omit<Numbered, "epoch">): Tidings[] {
    if (this.#number !== undefined && number <= this.#number) return [];
    if (this.#early.size < EARLY_MAX) this.#early.set(number, news.slice());
    const applied = this.#applyEarly();
    if (this.#early.size > 0) this.#isBehind = true;
    return applied;
  }

  /** The whole, of this epoch. */
  receiveWhole({ number, news: bytes }: Omit<Numbered, "epoch">): Tidings[] {
    if (this.#number !== undefined && number < this.#number) return []; // Asked for before the news that have come since.
    const news = decodeNews(bytes);
    if (news === undefined) return [];
    const isFirst = this.#number === undefined;
    const before = this.#seen;
    this.#number = number;
    this.#isBehind = false;
    this.#isEmpty = false;
    this.#whole = undefined;
    this.#seen = new Few(numberOf);
    this.#byClient = undefined;
    for (const participant of news.present) this.#see(seenOf(participant, NO_FIELDS));
    for (const state of news.states) this.#applyState(state);
    for (const early of this.#early.keys()) if (early <= number) this.#early.delete(early);
    const told = isFirst ? { bytes: this.whole, news } : tidingsOf(changeBetween(before, this.#seen));
    return [...(told === undefined ? [] : [told]), ...this.#applyEarly()];
  }

  #applyEarly(): Tidings[] {
    const applied: Tidings[] = [];
    while (this.#number !== undefined) {
      const bytes = this.#early.get(this.#number + 1);
      if (bytes === undefined) return applied;
      const news = decodeNews(bytes);
      this.#early.delete(this.#number + 1);
      if (news === undefined) {
        this.#isBehind = true; // Of another version: the whole may say it otherwise.
        return applied;
      }
      this.#number += 1;
      this.#apply(news);
      applied.push({ bytes, news });
    }
    return applied;
  }

  #apply({ present, gone, states }: PresenceNews): void {
    this.#whole = undefined;
    for (const number of gone) {
      this.#forget(number);
    }
    for (const participant of present) this.#receivePresent(participant);
    for (const state of states) this.#applyState(state);
  }

  /** Who is there already is nearly always a spectator now, or an editor again: what is made anew for that would be garbage of a room that is quiet. */
  #receivePresent(participant: Participant): void {
    const { number, client, user, name, canWrite, spectator } = participant;
    const seen = this.#seen.get(number);
    if (seen?.client === client && seen.user === user && seen.name === name) Object.assign(seen, { canWrite, spectator });
    else this.#see(seenOf(participant, seen?.fields ?? NO_FIELDS));
  }

  #see(seen: Seen): void {
    this.#seen.set(seen);
    if (this.#byClient !== undefined) this.#byClient.set(seen.client, seen);
    else if (this.#seen.size > FEW) this.#byClient = new Map([...this.#seen.values()].map((each) => [each.client, each]));
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
    for (const { name, value } of fields) seen.fields = withField(seen.fields, name, value);
  }
}

function numberOf({ number }: Seen): ParticipantNumber {
  return number;
}

/** Written out: decoded objects and copies made by spreading weigh half as much again. */
function seenOf({ number, client, user, name, canWrite, spectator }: Participant, fields: ShownFields): Seen {
  return { number, client, user, name, canWrite, spectator, fields };
}

/** MODE as it was told last. */
export function isSameStanding(a: Standing | undefined, b: Standing): boolean {
  return a !== undefined && a.mode === b.mode && a.presencePerSecond === b.presencePerSecond && a.shed === b.shed;
}

function wholeOf(seen: Few<ParticipantNumber, Seen>): PresenceNews {
  const everybody = [...seen.values()];
  const states = everybody.filter(({ fields }) => fields.length > 0).map(({ number, fields }) => ({ number, fields }));
  return { whole: true, present: everybody, gone: [], states };
}

const NOTHING = new Uint8Array(0);

/** Numbers are of one epoch: so what a gateway missed is told as a change, and not to everybody whole. */
function changeBetween(before: Few<ParticipantNumber, Seen>, after: Few<ParticipantNumber, Seen>): PresenceNews {
  const gone = [...before.values()].map(numberOf).filter((number) => !after.has(number));
  const present: Participant[] = [];
  const states: PresenceState[] = [];
  for (const seen of after.values()) {
    const { number, fields } = seen;
    const was = before.get(number);
    if (was === undefined || !isSameParticipant(was, seen)) present.push(seen);
    const shownBefore = was?.fields ?? NO_FIELDS;
    const names = new Set([...fields, ...shownBefore].map(({ name }) => name));
    const changed = [...names]
      .filter((name) => !isSame(valueOf(shownBefore, name), valueOf(fields, name)))
      .map((name) => ({ name, value: valueOf(fields, name) ?? NOTHING }));
    if (changed.length > 0) states.push({ number, fields: changed });
  }
  return { whole: false, present, gone, states };
}

function tidingsOf(news: PresenceNews): Tidings | undefined {
  return news.present.length + news.gone.length + news.states.length === 0 ? undefined : { bytes: encodeNews(news), news };
}

function isSameParticipant(a: Participant, b: Participant): boolean {
  return a.user === b.user && a.name === b.name && a.canWrite === b.canWrite && a.spectator === b.spectator;
}

function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}
