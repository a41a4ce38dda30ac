/**
 * The presence that members of this gateway send, from its arrival until the room shows it. Only the newest value of a
 * field counts, so values above the rate are never sent. A field that the room does not show is sent again, at growing
 * intervals.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import {
  membersInParts,
  type PresenceMember,
  type PresenceMemberState,
  type PresenceToOwner,
  statesInParts,
} from "../../shared/bus/presence-messages.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { LazyMap, LazySet } from "../../shared/collections/lazy-map.ts";
import { type ParticipantNumber, type PresenceDelta, type PresenceField, VIEWPORT, Y_CLOCK } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import {
  bytesOf,
  type FieldSender,
  hasOtherWaiting,
  LONG_AGO,
  memberBytesPerSecond,
  newSender,
  NOTHING,
  payFor,
  type PresenceOutboxOptions,
  takeWaiting,
  withFields,
} from "./member-fields.ts";
import { inStep, PresenceMembers, type PresenceMembersOptions } from "./presence-members.ts";
import type { PresenceView } from "./presence-view.ts";

export type PresenceRelayOptions = PresenceMembersOptions & PresenceOutboxOptions & { readonly ownerSilenceMsMax: number };

/** `delayed`: number of clients whose next fields wait because of the bytes of these. */
type DueFields = { fresh: PresenceMemberState[]; again: PresenceMemberState[]; delayed: number };

/** The value that the room shows of a client's field. Undefined: none. */
type ShownValue = (client: ClientId, name: string) => Uint8Array | undefined;

const NEVER = Number.POSITIVE_INFINITY as Millis;
/** Interval at which a quiet room is checked. */
const WATCH_MS = 5_000;
/** The interval doubles with each repetition, up to this limit. */
const REPEAT_MS_MAX = 8_000;

export class PresenceOutbox {
  readonly #options: PresenceOutboxOptions;
  readonly #senders = new LazyMap<ClientId, FieldSender>();
  /** Clients with fields to send, and clients whose sent fields the room does not show yet. */
  readonly #waiting = new LazySet<ClientId>();
  readonly #unshown = new LazySet<ClientId>();
  #flushAt = LONG_AGO;

  constructor(options: PresenceOutboxOptions) {
    this.#options = options;
  }

  /**
   * False: the fields exceed a member's limits, and the earlier fields stay. The values are kept, so their buffers must
   * not be reused.
   */
  set(client: ClientId, fields: readonly PresenceField[]): boolean {
    const sender = this.#senders.get(client) ?? newSender();
    const latest = new Map(fields.map(({ name, value }) => [name, value])); // A client may name a field twice: only the last value counts.
    let { bytes, count } = sender;
    for (const [name, value] of latest) {
      const before = sender.fields.get(name)?.value ?? NOTHING;
      bytes += bytesOf(name, value) - bytesOf(name, before);
      count += Math.sign(value.byteLength) - Math.sign(before.byteLength);
    }
    if (latest.size === 0) return true;
    if (bytes > this.#options.memberBytesMax || count > this.#options.memberFieldsMax) return false;
    const next = withFields(sender.fields, latest, this.#options);
    if (next === undefined) return false;
    this.#senders.set(client, Object.assign(sender, { bytes, count, fields: next }));
    this.#waiting.add(client);
    return true;
  }

  remove(client: ClientId): void {
    this.#senders.delete(client);
    this.#waiting.delete(client);
    this.#unshown.delete(client);
  }

  /** The room now shows these fields of a client. */
  receiveShown(client: ClientId, fields: readonly PresenceField[]): void {
    const sender = this.#senders.get(client);
    if (sender === undefined) return;
    for (const { name, value } of fields) {
      const field = sender.fields.get(name);
      if (field === undefined || field.stage === "waiting") continue;
      // A different value is an earlier one, or it came over another gateway that the client has left or joined.
      field.stage = isSameBytes(field.value, value) ? "shown" : "sent";
      if (field.stage === "sent") this.#unshown.add(client);
    }
  }

  /** The room lost the presence of the clients, because the owner is new or the clients are new to it. */
  resend(clients: Iterable<ClientId> = this.#senders.keys()): void {
    for (const client of clients) {
      const sender = this.#senders.get(client);
      if (sender === undefined || sender.fields.size === 0) continue;
      for (const field of sender.fields.values())
        if (field.stage !== "waiting") Object.assign(field, { stage: "waiting", fresh: false, repeatMs: this.#options.repeatMs });
      sender.nextAt = LONG_AGO;
      sender.nextViewportAt = LONG_AGO;
      this.#waiting.add(client);
    }
  }

  /** Time at which there is something to send. */
  get dueAt(): Millis {
    if (this.#waiting.size === 0) return NEVER;
    let first = NEVER;
    for (const client of this.#waiting) {
      const { fields, nextAt, nextViewportAt } = this.#senders.get(client)!;
      const onlyViewport = fields.get(VIEWPORT)?.stage === "waiting" && !hasOtherWaiting(fields);
      const dueAt = onlyViewport ? (Math.max(nextAt, nextViewportAt) as Millis) : nextAt;
      if (dueAt < first) first = dueAt;
      if (first <= this.#flushAt) break;
    }
    return Math.max(first, this.#flushAt) as Millis;
  }

  /** The fields to send now, limited to the rates of each client. `participants`: of the room. */
  takeDue(perSecond: number, now: Millis, participants = 1): DueFields {
    const due: DueFields = { fresh: [], again: [], delayed: 0 };
    const rates = { perSecond, bytesPerSecond: memberBytesPerSecond(participants) };
    if (now < this.#flushAt) return due;
    for (const client of this.#waiting) {
      const sender = this.#senders.get(client)!;
      if (now < sender.nextAt) continue;
      const taken = takeWaiting(sender, now);
      if (!hasOtherWaiting(sender.fields) && sender.fields.get(VIEWPORT)?.stage !== "waiting") this.#waiting.delete(client);
      if (taken.fresh.length + taken.again.length === 0) continue;
      if (taken.fresh.length > 0) due.fresh.push({ client, fields: taken.fresh });
      if (taken.again.length > 0) due.again.push({ client, fields: taken.again });
      if (payFor(sender, [...taken.fresh, ...taken.again], rates, now)) due.delayed += 1;
      this.#unshown.add(client);
    }
    if (due.fresh.length + due.again.length > 0) this.#flushAt = (now + this.#options.flushMs) as Millis;
    return due;
  }

  /** Call at intervals. Schedules sent fields again that the room does not show. */
  findUnshown(shown: ShownValue, now: Millis): void {
    for (const client of this.#unshown) {
      const { fields } = this.#senders.get(client)!;
      // Deltas contain only changes, not values that the room showed before.
      this.receiveShown(
        client,
        [...fields.keys()].map((name) => ({ name, value: shown(client, name) ?? NOTHING })),
      );
      let hasSent = false;
      for (const field of fields.values()) {
        if (field.stage !== "sent") continue;
        hasSent = true;
        if (now - field.sentAt < field.repeatMs) continue;
        field.stage = "waiting";
        field.fresh = false;
        field.repeatMs = Math.min(2 * field.repeatMs, REPEAT_MS_MAX);
        this.#waiting.add(client);
      }
      if (!hasSent) this.#unshown.delete(client);
    }
  }

  /** Whether `findUnshown` may find something. */
  get hasUnshown(): boolean {
    return this.#unshown.size > 0;
  }
}

/** `entered`: new or changed members. `shown`: fields that are sent for the first time. `delayed`: as in `DueFields`. */
type DuePresence = {
  readonly messages: readonly PresenceToOwner[];
  readonly entered: readonly PresenceMember[];
  readonly shown: readonly PresenceMemberState[];
  readonly delayed: number;
};

/**
 * The presence of this gateway's members, on its way to the owner. Sends it again until the owner shows it, and reports
 * a silent owner.
 */
export class PresenceUpward {
  readonly members: PresenceMembers;
  readonly #options: PresenceRelayOptions;
  readonly #outbox: PresenceOutbox;
  readonly #view: PresenceView;
  #statesNumber: number;
  #watchedAt: Millis;
  /** When the oldest unconfirmed message was sent. */
  #waitingSince = LONG_AGO;
  #silenceReportedAt = LONG_AGO;

  /** `lastNumber`: above all numbers and versions that this gateway ever used in the room. */
  constructor(options: PresenceRelayOptions, view: PresenceView, lastNumber: number, now: Millis) {
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

  /** Time at which fields are to be sent. */
  get fieldsDueAt(): Millis {
    return this.#outbox.dueAt;
  }

  /** Time of the next check of the room. */
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
    // The fields come from a former connection of the client, and are older than the current ones.
    if (this.members.connectionsOf(member.client).at(-1) !== connection) return true;
    if (fields.some(({ name }) => name !== Y_CLOCK)) this.members.receiveActivity(connection, now);
    return this.#outbox.set(member.client, fields);
  }

  /** The room has no owner, so no owner still lists members who have left. */
  receiveNoResponders(): void {
    if (this.members.size === 0) this.members.receiveNoOwner();
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

  /** Returns the messages to send to the owner now. Viewports are sent at the rate at which members send them. */
  takeDue(presencePerSecond: number, now: Millis, participants = 1): DuePresence {
    const wasWaiting = this.#isWaiting;
    const { fresh, again, delayed } = this.#outbox.takeDue(presencePerSecond, now, participants);
    const members = this.members.takeDue(this.#view.epoch, now, fresh);
    const messages = [
      ...(members === undefined ? [] : membersInParts(members)),
      ...this.#statesOf(fresh, true),
      ...this.#statesOf(again, false),
    ];
    if (messages.length > 0 && !wasWaiting) this.#waitingSince = now;
    return { messages, entered: members?.entered ?? [], shown: fresh, delayed };
  }

  /** Checks the sent messages. Returns whether the owner has been silent for too long. */
  watch(now: Millis, isAttached = true): boolean {
    this.members.findSpectators(now);
    // The view may still show fields that a former owner confirmed. This proves nothing about the new owner.
    this.#outbox.findUnshown((client, name) => (this.#view.isOfEarlierEpoch ? undefined : this.#view.shown(client, name)), now);
    this.#view.forgetSnapshot();
    this.#watchedAt = now;
    const { unackedSince } = this.members;
    if (!isAttached || unackedSince === undefined) return false;
    if (now - Math.max(unackedSince, this.#silenceReportedAt) < this.#options.ownerSilenceMsMax) return false;
    this.#silenceReportedAt = now;
    return true;
  }

  /** The owner has to answer, or to show the presence that it received. */
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
    return statesInParts(states).map((part) => ({
      kind: "states",
      gateway: this.#options.gateway,
      number: (this.#statesNumber += 1),
      fresh,
      states: part,
    }));
  }
}
