/**
 * Relays a room's presence on this gateway: what members show on its way to the room's owner, and what the owner sends
 * on its way to the members. Deterministic and independent of edits.
 *
 * Two promises, whatever NATS loses: a field that a member shows is shown or sent again, and members see all
 * participants and nobody else. Rules PRG1 to PRG9.
 */

import { assertNever } from "../../shared/assert.ts";
import {
  membersInParts,
  type PresenceFromOwner,
  type PresenceMember,
  type PresenceMemberState,
  type PresenceReply,
  type PresenceToOwner,
  statesInParts,
} from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, Millis } from "../../shared/ids.ts";
import { type ParticipantNumber, type PresenceDelta, type PresenceField, Y_CLOCK } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { Audience } from "./audience.ts";
import type { PresenceRelayEffect, PresenceRelayInput } from "./relay-messages.ts";
import { inStep, PresenceMembers, type PresenceMembersOptions } from "./presence-members.ts";
import { PresenceOutbox, type PresenceOutboxOptions } from "./presence-outbox.ts";
import { PresenceView, type PresenceUpdate } from "./presence-view.ts";

export type PresenceRelayOptions = PresenceMembersOptions & PresenceOutboxOptions & { readonly ownerSilenceMsMax: number };

const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;
/** Interval at which a quiet room is checked. */
const WATCH_MS = 5_000;

export class PresenceRelay {
  readonly #options: PresenceRelayOptions;
  readonly #view = new PresenceView();
  readonly #up: PresenceUpward;
  readonly #audience: Audience;
  #attached = false;
  #askedAt = AT_ONCE;

  /** `lastNumber`: above all numbers and versions that this gateway ever used in the room. */
  constructor(options: PresenceRelayOptions, lastNumber: number, now: Millis) {
    this.#options = options;
    this.#up = new PresenceUpward(options, this.#view, lastNumber, now);
    this.#audience = new Audience(this.#up.members, this.#view);
  }

  get members(): number {
    return this.#up.members.size;
  }

  /** There are no members here, and the owner knows that. */
  get isDone(): boolean {
    return this.#up.members.isDone;
  }

  knows(client: ClientId): boolean {
    return this.#view.has(client);
  }

  /**
   * A room over its budget admits nobody new for a moment, but clients that were just there. Undefined: the owner has
   * not answered yet.
   */
  isFullFor(client: ClientId): boolean | undefined {
    return this.#view.isEmpty ? undefined : this.#audience.isFull && !this.#view.has(client);
  }

  get lastNumber(): number {
    return this.#up.lastNumber;
  }

  /** When the next tick has something to do. */
  get dueAt(): Millis {
    const always = Math.min(this.#audience.dueAt, this.#up.watchAt);
    if (!this.#attached) return always as Millis;
    const syncAt = this.#view.isBehind ? this.#askedAt + this.#options.repeatMs : NEVER;
    return Math.min(always, this.#up.dueAt, syncAt) as Millis;
  }

  /** Returns whether there is something to send: a spectator has become an editor. */
  receiveActivity(connection: ConnectionId, now: Millis): boolean {
    return this.#up.members.receiveActivity(connection, now);
  }

  receiveInput(input: PresenceRelayInput, now: Millis): PresenceRelayEffect[] {
    switch (input.kind) {
      case "enter":
        return this.#audience.receiveEntry(input.connection, this.#up.enter(input.connection, input.member, now));
      case "leave":
        return this.#audience.receiveLeave(input.connection, this.#up.leave(input.connection));
      case "behind":
        return this.#audience.receiveBehind(input.connection);
      case "keeping-up":
        this.#audience.receiveKeepingUp(input.connection);
        return [];
      case "fields":
        return this.#up.receiveFields(input.connection, input.fields, now) ? [] : [{ kind: "refuse", connection: input.connection }];
      case "from-owner":
        return this.#receiveFromOwner(input.message, now);
      case "answer":
        return this.#receiveAnswer(input.answer, now);
      case "no-responders":
        this.#up.receiveNoResponders();
        return [];
      case "attached":
        this.#attached = true;
        this.#view.receiveReconnect();
        this.#askedAt = AT_ONCE;
        this.#up.resendAll();
        return [];
      case "detached":
        this.#attached = false;
        return [];
      case "shed":
        return this.#audience.receiveShed(input.level, now);
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #receiveFromOwner(message: PresenceFromOwner, now: Millis): PresenceRelayEffect[] {
    if (!this.#acceptsEpoch(message.epoch)) return [];
    switch (message.kind) {
      case "delta":
        return this.#applyUpdates(this.#view.receiveDelta(message), now);
      case "head":
        this.#view.receiveHead(message.number);
        // A new owner has not received all members yet, so its count is too low.
        return this.#view.isOfEarlierEpoch ? [] : this.#audience.receiveStatus(message.status, now);
      default:
        return assertNever(message);
    }
  }

  #receiveAnswer(answer: PresenceReply, now: Millis): PresenceRelayEffect[] {
    if (!this.#acceptsEpoch(answer.epoch)) return [];
    switch (answer.kind) {
      case "acked":
        this.#up.members.receiveAck(answer.version);
        this.#view.receiveHead(answer.number);
        return [];
      case "missed":
        this.#up.members.resendAll();
        return [];
      case "snapshot":
        return [
          { kind: "synced" },
          ...this.#applyUpdates(this.#view.receiveSnapshot(answer), now),
          ...this.#audience.receiveStatus(answer.status, now),
        ];
      default:
        return assertNever(answer);
    }
  }

  /** Returns whether messages of that epoch count. */
  #acceptsEpoch(epoch: Epoch): boolean {
    const known = this.#view.receiveEpoch(epoch);
    if (known === "new-epoch") {
      this.#askedAt = AT_ONCE;
      this.#up.receiveNewOwner();
    }
    return known !== "past";
  }

  #applyUpdates(updates: readonly PresenceUpdate[], now: Millis): PresenceRelayEffect[] {
    return updates.flatMap((update) => {
      this.#up.receiveDelta(update.delta);
      return this.#audience.sendUpdate(update, now);
    });
  }

  #receiveTick(now: Millis): PresenceRelayEffect[] {
    const effects: PresenceRelayEffect[] = [];
    if (now >= this.#up.watchAt && this.#up.watch(now, this.#attached)) effects.push({ kind: "owner-silent" });
    effects.push(...this.#audience.receiveTick(now));
    if (!this.#attached) return effects;
    const { messages, entered, shown } = this.#up.takeDue(this.#audience.presencePerSecond, now);
    for (const message of messages) effects.push({ kind: "send-to-owner", message });
    this.#audience.changeLanes(entered);
    effects.push(...this.#audience.receiveShown(shown));
    if (!this.#view.isBehind || now < this.#askedAt + this.#options.repeatMs) return effects;
    this.#askedAt = now;
    effects.push({ kind: "send-to-owner", message: { kind: "sync", gateway: this.#options.gateway } });
    return effects;
  }
}

/** `entered`: new or changed members. `shown`: fields that are sent for the first time. */
export type DuePresence = {
  readonly messages: readonly PresenceToOwner[];
  readonly entered: readonly PresenceMember[];
  readonly shown: readonly PresenceMemberState[];
};

/**
 * What members of this gateway show, on its way to the owner: repeated until the owner shows it. Reports an owner that
 * is silent.
 */
export class PresenceUpward {
  readonly members: PresenceMembers;
  readonly #options: PresenceRelayOptions;
  readonly #outbox: PresenceOutbox;
  readonly #view: PresenceView;
  #statesNumber: number;
  #watchedAt: Millis;
  /** When the oldest unconfirmed message was sent. */
  #waitingSince = AT_ONCE;
  #silenceReportedAt = AT_ONCE;

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
  watch(now: Millis, isAttached = true): boolean {
    this.members.findSpectators(now);
    // The view may still show what a former owner confirmed, which proves nothing about the new owner.
    this.#outbox.findUnshown((client, name) => (this.#view.isOfEarlierEpoch ? undefined : this.#view.shown(client, name)), now);
    this.#view.forgetSnapshot();
    this.#watchedAt = now;
    const { unackedSince } = this.members;
    if (!isAttached || unackedSince === undefined) return false;
    if (now - Math.max(unackedSince, this.#silenceReportedAt) < this.#options.ownerSilenceMsMax) return false;
    this.#silenceReportedAt = now;
    return true;
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
    return statesInParts(states).map((part) => ({
      kind: "states",
      gateway: this.#options.gateway,
      number: (this.#statesNumber += 1),
      fresh,
      states: part,
    }));
  }
}
