/**
 * A room's presence on its way to the owner: who is in the room over this gateway and what they show, until the owner
 * confirms it. The gateway repeats what the owner does not show, and reports an owner that is silent.
 */

import type { PresenceMember, PresenceMemberState, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { splitBySize } from "../../shared/collections/split-by-size.ts";
import { type ParticipantNumber, type PresenceField, type PresenceDelta, Y_CLOCK } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceMembers, type PresenceMembersOptions, inStep } from "./presence-members.ts";
import { PresenceOutbox, type PresenceOutboxOptions } from "./presence-outbox.ts";
import type { PresenceView } from "./presence-view.ts";

export type PresenceUpwardOptions = PresenceMembersOptions & PresenceOutboxOptions & { readonly ownerSilenceMsMax: number };

/** `entered`: new or changed members. `shown`: fields that are sent for the first time. */
export type DuePresence = {
  readonly messages: readonly PresenceToOwner[];
  readonly entered: readonly PresenceMember[];
  readonly shown: readonly PresenceMemberState[];
};

type Members = PresenceToOwner & { kind: "members" };

/** Interval at which a quiet room is checked. */
const WATCH_MS = 5_000;
/** Maximum size of a message; the rest follows in the next one. NATS accepts 1 MB. */
const MESSAGE_BYTES_MAX = 256 * 1024;
/** Overhead of a member, of a client's fields and of one field. Texts take up to three bytes a character. */
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
  /** When the oldest unconfirmed message was sent. */
  #waitingSince = LONG_AGO;
  #silenceReportedAt = LONG_AGO;

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

  /** When there is something to send. */
  get dueAt(): Millis {
    return Math.min(this.members.dueAt, this.#outbox.dueAt) as Millis;
  }

  /** When the room is to be checked again. */
  get watchAt(): Millis {
    const watchAt = inStep(this.#watchedAt + WATCH_MS);
    return this.#isWaiting
      ? (Math.min(watchAt, Math.max(this.#waitingSince, this.#watchedAt) + this.#options.repeatMs) as Millis)
      : watchAt;
  }

  /** Returns the member that left because its last connection now belongs to another client. */
  enter(connection: ConnectionId, member: PresenceMember, now: Millis): ClientId | undefined {
    const gone = this.members.enter(connection, member, now);
    if (gone !== undefined) this.#outbox.remove(gone);
    const number = this.#view.numberOf(member.client); // The client comes from another gateway.
    if (number !== undefined) this.#know(member.client, number);
    return gone;
  }

  /** Returns the member that left, if this was its last connection. */
  leave(connection: ConnectionId): ClientId | undefined {
    const gone = this.members.leave(connection);
    if (gone !== undefined) this.#outbox.remove(gone);
    return gone;
  }

  /** False: the fields exceed a member's limits. */
  receiveFields(connection: ConnectionId, fields: readonly PresenceField[], now: Millis): boolean {
    const member = this.members.of(connection);
    if (member === undefined) return true;
    // The fields come from the client's former connection, and are older than those of the current one.
    if (this.members.connectionsOf(member.client).at(-1) !== connection) return true;
    if (fields.some(({ name }) => name !== Y_CLOCK)) this.members.receiveActivity(connection, now);
    return this.#outbox.set(member.client, fields);
  }

  /** Nobody owns the room, so nobody believes that members who left are still there. */
  receiveNoResponders(): void {
    if (this.members.size === 0) this.members.receiveAck(this.members.version);
  }

  receiveNewOwner(): void {
    this.members.receiveNewOwner();
    this.#outbox.resend();
  }

  resendAll(): void {
    this.members.resendAll();
    this.#outbox.resend();
  }

  /** Call after the view has applied the delta. */
  receiveDelta(delta: PresenceDelta): void {
    for (const { number, fields } of delta.states) {
      const client = this.#view.clientOf(number);
      if (client !== undefined) this.#outbox.receiveShown(client, fields);
    }
    for (const { client, number } of delta.present) this.#receiveNumber(client, number);
    const mayBeMissing = delta.gone.length > 0 || delta.snapshot; // The owner may have removed a member that is here: this gateway was silent, or its message was lost.
    if (mayBeMissing && this.members.receiveGone((client) => this.#view.has(client))) this.resendAll();
  }

  /** Returns the messages to send to the owner now. Viewports go on at the rate at which members send them. */
  takeDue(presencePerSecond: number, now: Millis): DuePresence {
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

  /** Checks what was sent. Returns whether the owner has been silent for too long. */
  watch(now: Millis): boolean {
    this.members.findSpectators(now);
    // The view may still show what a former owner confirmed, which proves nothing about the new owner.
    this.#outbox.findUnshown((client, name) => (this.#view.isOfEarlierEpoch ? undefined : this.#view.shown(client, name)), now);
    this.#view.forgetSnapshot();
    this.#watchedAt = now;
    const { unackedSince } = this.members;
    return unackedSince !== undefined && now - Math.max(unackedSince, this.#silenceReportedAt) >= this.#options.ownerSilenceMsMax;
  }

  /** A later silence is reported again. */
  receiveSilenceReported(now: Millis): void {
    this.#silenceReportedAt = now;
  }

  /** The owner has to answer, or to show what it received. */
  get #isWaiting(): boolean {
    return this.members.unackedSince !== undefined || this.#outbox.hasUnshown;
  }

  /** With another number, the client is a new participant for the owner, which shows nothing of it yet. */
  #receiveNumber(client: ClientId, number: ParticipantNumber): void {
    const before = this.#know(client, number);
    if (before !== undefined && before !== number) this.#outbox.resend([client]);
  }

  /** Undefined: the client had no number, or has no connection here. */
  #know(client: ClientId, number: ParticipantNumber): ParticipantNumber | undefined {
    if (!this.members.has(client)) this.members.receiveOtherParticipant();
    return this.members.receiveNumber(client, number);
  }

  #statesOf(states: readonly PresenceMemberState[], fresh: boolean): PresenceToOwner[] {
    return splitBySize(states, bytesOf, MESSAGE_BYTES_MAX).map((part) => ({
      kind: "states",
      gateway: this.#options.gateway,
      number: (this.#statesNumber += 1),
      fresh,
      states: part,
    }));
  }
}

/** Nearly always one message. Several parts count once all of them have arrived. */
function membersInParts(message: Members): Members[] {
  const exits = splitBySize(message.exited, (client) => client.length + 1, MESSAGE_BYTES_MAX).map((exited) => ({
    ...message,
    entered: [],
    exited,
  }));
  const entries = splitBySize(message.entered, bytesOfMember, MESSAGE_BYTES_MAX).map((entered) => ({ ...message, entered, exited: [] }));
  if (exits.length + entries.length <= 1 || (exits.length === 1 && entries.length === 1)) return [message];
  const parts = [...exits, ...entries];
  return parts.map((part, index) => ({ ...part, partOf: { part: index + 1, parts: parts.length } }));
}

function bytesOfMember({ client, user, name }: PresenceMember): number {
  return MEMBER_BYTES + client.length + (user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOf({ client, fields }: PresenceMemberState): number {
  return fields.reduce(
    (sum, { name, value }) => sum + FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength,
    STATE_BYTES + client.length,
  );
}
