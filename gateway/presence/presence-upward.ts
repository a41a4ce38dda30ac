/**
 * The way up of a room's presence on this gateway: who of it is in the room and what they show, until the room's owner
 * tells the room of it. What the owner does not show is told again; an owner that says nothing is asked after.
 */

import type { Member, MemberState, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { inParts } from "../../shared/in-parts.ts";
import { type ParticipantNumber, type PresenceField, type PresenceNews, Y_CLOCK } from "../../shared/wire/presence.ts";
import { inStep } from "./in-step.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceMembers, type PresenceMembersOptions } from "./presence-members.ts";
import { PresenceOutbox, type PresenceOutboxOptions } from "./presence-outbox.ts";
import type { PresenceView } from "./presence-view.ts";

export type PresenceUpwardOptions = PresenceMembersOptions & PresenceOutboxOptions & { readonly ownerSilenceMsMax: number };

/** `entered` are new or another than before; `shown`: what of theirs goes on now for the first time. */
export type Told = {
  readonly messages: readonly PresenceToOwner[];
  readonly entered: readonly Member[];
  readonly shown: readonly MemberState[];
};

type Members = PresenceToOwner & { kind: "members" };

/** How often a quiet room is looked after. */
const WATCH_MS = 5_000;
/** Of a message; the rest goes into the next. NATS takes a megabyte. */
const MESSAGE_BYTES_MAX = 256 * 1024;
/** Beside a member's texts, which have up to three bytes a character; beside a client's fields; beside a field's name and value. */
const MEMBER_BYTES = 8;
const STATE_BYTES = 8;
const FIELD_BYTES = 8;
const BYTES_PER_CODE_UNIT = 3;
const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;

export class PresenceUpward {
  readonly members: PresenceMembers;
  readonly #options: PresenceUpwardOptions;
  readonly #outbox: PresenceOutbox;
  readonly #view: PresenceView;
  #statesNumber: number;
  #watchedAt: Millis;
  /** When the first was told of what was not confirmed then. */
  #waitingSince = LONG_AGO;
  #silenceToldAt = LONG_AGO;

  /** `lastNumber`: above all numbers and versions that this gateway ever used in the room. */
  constructor(options: PresenceUpwardOptions, view: PresenceView, lastNumber: number, now: Millis) {
    this.#options = options;
    this.#view = view;
    this.members = new PresenceMembers(options, lastNumber);
    this.#outbox = new PresenceOutbox(options);
    this.#statesNumber = lastNumber;
    this.#watchedAt = now;
  }

  get lastNumber(): number {
    return Math.max(this.members.version, this.#statesNumber);
  }

  /** When there is something to tell. */
  get dueAt(): Millis {
    return Math.min(this.members.dueAt, this.#outbox.dueAt) as Millis;
  }

  /** When it is to be looked after again, told or not. */
  get watchAt(): Millis {
    const watchAt = inStep(this.#watchedAt + WATCH_MS);
    return this.#isWaiting
      ? (Math.min(watchAt, Math.max(this.#waitingSince, this.#watchedAt) + this.#options.repeatMs) as Millis)
      : watchAt;
  }

  /** The member that is gone because the connection, its last, is another's from now on. */
  enter(connection: ConnectionId, member: Member, now: Millis): ClientId | undefined {
    const gone = this.members.enter(connection, member, now);
    if (gone !== undefined) this.#outbox.remove(gone);
    const number = this.#view.numberOf(member.client); // Of one that comes from another gateway.
    if (number !== undefined) this.#know(member.client, number);
    return gone;
  }

  /** The member that is gone with it, if it was its last connection. */
  leave(connection: ConnectionId): ClientId | undefined {
    const gone = this.members.leave(connection);
    if (gone !== undefined) this.#outbox.remove(gone);
    return gone;
  }

  /** False: more than one member may show. */
  receiveFields(connection: ConnectionId, fields: readonly PresenceField[], now: Millis): boolean {
    const member = this.members.of(connection);
    if (member === undefined) return true;
    // Of its line before: it was still on its way when the client had come back, and is what the client showed then.
    if (this.members.connectionsOf(member.client).at(-1) !== connection) return true;
    if (fields.some(({ name }) => name !== Y_CLOCK)) this.members.receiveInput(connection, now);
    return this.#outbox.set(member.client, fields);
  }

  /** Nobody owns the room: there is nobody who could take those who left to be here. */
  receiveNoResponders(): void {
    if (this.members.size === 0) this.members.receiveHeard(this.members.version);
  }

  receiveNewOwner(): void {
    this.members.receiveNewOwner();
    this.#outbox.tellAgain();
  }

  sayAllAgain(): void {
    this.members.sayAllAgain();
    this.#outbox.tellAgain();
  }

  /** What the view has already. */
  receiveNews(news: PresenceNews): void {
    for (const { number, fields } of news.states) {
      const client = this.#view.clientOf(number);
      if (client !== undefined) this.#outbox.receiveShown(client, fields);
    }
    for (const { client, number } of news.present) this.#receiveNumber(client, number);
    const mayBeMissing = news.gone.length > 0 || news.whole; // Somebody may be taken for gone who is here: this gateway was silent, or what it said was lost.
    if (mayBeMissing && this.members.receiveGone((client) => this.#view.has(client))) this.sayAllAgain();
  }

  /** What to tell the owner now. Views go on at the pace at which they are told. */
  takeDue(presencePerSecond: number, now: Millis): Told {
    const wasWaiting = this.#isWaiting;
    const { fresh, again } = this.#outbox.takeDue(presencePerSecond, now);
    const members = this.members.takeDue(this.#view.epoch, now, fresh);
    const messages = [
      ...(members === undefined ? [] : membersInParts(members)),
      ...this.#statesOf(fresh, true),
      ...this.#statesOf(again, false),
    ];
    if (messages.length > 0 && !wasWaiting) this.#waitingSince = now;
    return { messages, entered: members?.entered ?? [], shown: fresh };
  }

  /** Looks after what was told. Whether the owner has been silent for too long. */
  watch(now: Millis): boolean {
    this.members.findSpectators(now);
    // What an owner before showed, and the view shows still, says nothing of what the new one was told.
    this.#outbox.findUnshown((client, name) => (this.#view.isOfThePast ? undefined : this.#view.shown(client, name)), now);
    this.#view.letGoOfWhole();
    this.#watchedAt = now;
    const { unheardSince } = this.members;
    return unheardSince !== undefined && now - Math.max(unheardSince, this.#silenceToldAt) >= this.#options.ownerSilenceMsMax;
  }

  /** From now on it is another silence. */
  receiveSilenceTold(now: Millis): void {
    this.#silenceToldAt = now;
  }

  /** For the owner to answer, or to show what it was told. */
  get #isWaiting(): boolean {
    return this.members.unheardSince !== undefined || this.#outbox.hasUnshown;
  }

  /** Under another number than before it is another to the owner, of whom nothing is shown. */
  #receiveNumber(client: ClientId, number: ParticipantNumber): void {
    const before = this.#know(client, number);
    if (before !== undefined && before !== number) this.#outbox.tellAgain([client]);
  }

  /** Undefined: it had none, or is not here. */
  #know(client: ClientId, number: ParticipantNumber): ParticipantNumber | undefined {
    const member = this.members.get(client);
    if (member === undefined) this.members.receiveOther();
    else this.#view.share(member);
    return this.members.receiveNumber(client, number);
  }

  #statesOf(states: readonly MemberState[], fresh: boolean): PresenceToOwner[] {
    return inParts(states, bytesOf, MESSAGE_BYTES_MAX).map((part) => ({
      kind: "states",
      gateway: this.#options.gateway,
      number: (this.#statesNumber += 1),
      fresh,
      states: part,
    }));
  }
}

/** As one message, as nearly always, or as several that count once all of them have come. */
function membersInParts(message: Members): Members[] {
  const exits = inParts(message.exited, (client) => client.length + 1, MESSAGE_BYTES_MAX).map((exited) => ({
    ...message,
    entered: [],
    exited,
  }));
  const entries = inParts(message.entered, bytesOfMember, MESSAGE_BYTES_MAX).map((entered) => ({ ...message, entered, exited: [] }));
  if (exits.length + entries.length <= 1 || (exits.length === 1 && entries.length === 1)) return [message];
  const parts = [...exits, ...entries];
  return parts.map((part, index) => ({ ...part, partOf: { part: index + 1, parts: parts.length } }));
}

function bytesOfMember({ client, user, name }: Member): number {
  return MEMBER_BYTES + client.length + (user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOf({ client, fields }: MemberState): number {
  return fields.reduce(
    (sum, { name, value }) => sum + FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength,
    STATE_BYTES + client.length,
  );
}
