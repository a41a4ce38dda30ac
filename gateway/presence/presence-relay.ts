/**
 * Relays a room's presence on this gateway: from the members to the room's owner, and from the owner to the members.
 * Deterministic and independent of edits. Two promises hold even if NATS loses messages. A field that a member changes
 * is shown or sent again. Members see all participants, and none that has left. Rules PRG1 to PRG9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { PresenceFromOwner, PresenceMember, PresenceReply, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, Millis, ServerId } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { Audience, type AudienceEffect } from "./audience.ts";
import { type PresenceRelayOptions, PresenceUpward } from "./presence-outbox.ts";
import { PresenceView, type PresenceUpdate } from "./presence-view.ts";

export type PresenceRelayInput =
  | { kind: "enter"; connection: ConnectionId; member: PresenceMember }
  | { kind: "leave"; connection: ConnectionId }
  /** The connection reads slower than the gateway sends. */
  | { kind: "behind"; connection: ConnectionId }
  | { kind: "keeping-up"; connection: ConnectionId }
  | { kind: "fields"; connection: ConnectionId; fields: readonly PresenceField[] }
  /** The room has an owner in that epoch. Undefined: its name is unknown. */
  | { kind: "owner"; server: ServerId | undefined; epoch: Epoch }
  | { kind: "from-owner"; server: ServerId; message: PresenceFromOwner }
  | { kind: "answer"; server: ServerId; answer: PresenceReply }
  /** The server does not own the room. */
  | { kind: "not-owner"; server: ServerId }
  | { kind: "server-gone"; server: ServerId }
  /** The room has no owner. */
  | { kind: "no-responders" }
  /** No later message to this gateway is missed. Earlier messages may have been missed. */
  | { kind: "attached" }
  | { kind: "detached" }
  /** `level`: the gateway's new shed level. */
  | { kind: "shed"; level: number }
  /** All inputs of this turn of the event loop have arrived, or something is due. */
  | { kind: "tick" };

export type PresenceRelayEffect =
  | { kind: "send-to-server"; server: ServerId; message: PresenceToOwner }
  /** The owner is not known. The question goes to the room's subject, and its owner answers. */
  | { kind: "ask-owner"; message: PresenceToOwner }
  | AudienceEffect
  | { kind: "refuse"; connection: ConnectionId }
  /** The bytes of this number of sent states delay the next state of their members. */
  | { kind: "delayed"; states: number }
  /** The owner does not answer, and may be gone. */
  | { kind: "owner-silent" }
  | { kind: "synced" };

const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

export class PresenceRelay {
  readonly #options: PresenceRelayOptions;
  readonly #view = new PresenceView();
  readonly #up: PresenceUpward;
  readonly #audience: Audience;
  #isAttached = false;
  /** Undefined: the owner is not known, so presence of members waits. */
  #owner: ServerId | undefined;
  #askedAt = AT_ONCE;
  /** Time of the first unanswered question for an owner. */
  #searchedSince: Millis | undefined;

  /** `lastNumber`: above all numbers and versions that this gateway ever used in the room. */
  constructor(options: PresenceRelayOptions, lastNumber: number, now: Millis) {
    this.#options = options;
    this.#up = new PresenceUpward(options, this.#view, lastNumber, now);
    this.#audience = new Audience(this.#up.members, this.#view);
  }

  /** There are no members here, and the owner knows that. */
  get isDone(): boolean {
    return this.#up.members.isDone;
  }

  knows(client: ClientId): boolean {
    return this.#view.has(client);
  }

  /** A room over its budget temporarily admits only clients that were in it a moment ago. Undefined: the owner has not answered yet. */
  isFullFor(client: ClientId): boolean | undefined {
    return this.#view.isEmpty ? undefined : this.#audience.isFull && !this.#view.has(client);
  }

  get lastNumber(): number {
    return this.#up.lastNumber;
  }

  /** Messages of owners with lower epochs are ignored. */
  get epoch(): Epoch {
    return this.#view.epoch;
  }

  /** The last known owner of the room. */
  get owner(): ServerId | undefined {
    return this.#owner;
  }

  /** Time at which the next tick has something to do, apart from fields of members. */
  get dueAt(): Millis {
    const always = Math.min(this.#audience.dueAt, this.#up.watchAt);
    if (!this.#isAttached) return always as Millis;
    const askAt = this.#view.isBehind || this.#owner === undefined ? this.#askedAt + this.#options.repeatMs : NEVER;
    return Math.min(always, this.#owner === undefined ? NEVER : this.#up.members.dueAt, askAt) as Millis;
  }

  /** Time at which fields of members are to be sent. */
  get fieldsDueAt(): Millis {
    return this.#isAttached && this.#owner !== undefined ? this.#up.fieldsDueAt : NEVER;
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
      case "owner":
        if (input.server !== undefined) this.#acceptsEpoch(input.epoch, input.server);
        else this.#receiveUnknownOwner(input.epoch);
        return [];
      case "from-owner":
        return this.#receiveFromOwner(input.message, input.server, now);
      case "answer":
        return this.#receiveAnswer(input.answer, input.server, now);
      case "not-owner":
        if (this.#owner === input.server) this.#loseOwner(AT_ONCE);
        return [];
      case "server-gone":
        // A server with a replica of the room announces itself within this time. A question per room would delay it.
        if (this.#owner === input.server) this.#loseOwner(now);
        return [];
      case "no-responders":
        if (this.#owner === undefined) this.#up.receiveNoResponders(); // Otherwise an owner was found after the question.
        return [];
      case "attached":
        this.#isAttached = true;
        this.#view.receiveReconnect();
        this.#askedAt = AT_ONCE;
        this.#up.resendAll();
        return [];
      case "detached":
        this.#isAttached = false;
        return [];
      case "shed":
        return this.#audience.receiveShed(input.level, now);
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #receiveFromOwner(message: PresenceFromOwner, server: ServerId, now: Millis): PresenceRelayEffect[] {
    if (!this.#acceptsEpoch(message.epoch, server)) return [];
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

  #receiveAnswer(answer: PresenceReply, server: ServerId, now: Millis): PresenceRelayEffect[] {
    if (!this.#acceptsEpoch(answer.epoch, server)) return [];
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

  /** Returns whether messages of that epoch count. If they do, their sender owns the room. */
  #acceptsEpoch(epoch: Epoch, server: ServerId): boolean {
    const known = this.#view.receiveEpoch(epoch);
    if (known === "past") return false;
    this.#owner = server;
    this.#searchedSince = undefined;
    if (known === "new-epoch") {
      this.#askedAt = AT_ONCE;
      this.#up.receiveNewOwner();
    }
    return true;
  }

  /** The former owner may not know that it was replaced. It would accept members here, and no other gateway would see them. */
  #receiveUnknownOwner(epoch: Epoch): void {
    if (this.#view.receiveEpoch(epoch) !== "new-epoch") return;
    this.#up.receiveNewOwner();
    this.#loseOwner(AT_ONCE);
  }

  /** The same server may own the room again in the same epoch. It received nothing before. */
  #loseOwner(askedAt: Millis): void {
    this.#owner = undefined;
    this.#askedAt = askedAt;
    this.#up.resendAll();
  }

  #applyUpdates(updates: readonly PresenceUpdate[], now: Millis): PresenceRelayEffect[] {
    return updates.flatMap((update) => {
      this.#up.receiveDelta(update.delta);
      return this.#audience.sendUpdate(update, now);
    });
  }

  #receiveTick(now: Millis): PresenceRelayEffect[] {
    const effects: PresenceRelayEffect[] = [];
    if (now >= this.#up.watchAt && this.#up.watch(now, this.#isAttached)) effects.push({ kind: "owner-silent" });
    effects.push(...this.#audience.receiveTick(now));
    if (!this.#isAttached) return effects;
    if (this.#owner === undefined) this.#askOwner(now, effects);
    else this.#sendTo(this.#owner, now, effects);
    return effects;
  }

  #sendTo(server: ServerId, now: Millis, effects: PresenceRelayEffect[]): void {
    const { presencePerSecond, participants } = this.#audience.ownerStatus;
    const { messages, entered, shown, delayed } = this.#up.takeDue(presencePerSecond, now, participants);
    for (const message of messages) effects.push({ kind: "send-to-server", server, message });
    if (delayed > 0) effects.push({ kind: "delayed", states: delayed });
    this.#audience.changeLanes(entered);
    effects.push(...this.#audience.receiveShown(shown));
    if (!this.#view.isBehind || now < this.#askedAt + this.#options.repeatMs) return;
    this.#askedAt = now;
    effects.push({ kind: "send-to-server", server, message: { kind: "sync", gateway: this.#options.gateway } });
  }

  #askOwner(now: Millis, effects: PresenceRelayEffect[]): void {
    if (now < this.#askedAt + this.#options.repeatMs) return;
    this.#askedAt = now;
    effects.push({ kind: "ask-owner", message: { kind: "sync", gateway: this.#options.gateway } });
    this.#searchedSince ??= now;
    if (now - this.#searchedSince < this.#options.ownerSilenceMsMax) return;
    this.#searchedSince = now;
    effects.push({ kind: "owner-silent" });
  }
}
