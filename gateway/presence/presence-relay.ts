/**
 * Relays a room's presence on this gateway: what members show on its way to the room's owner, and what the owner sends
 * on its way to the members. Deterministic and independent of edits.
 *
 * Two promises, whatever NATS loses: a field that a member shows is shown or sent again, and members see all
 * participants and nobody else. Rules PRG1 to PRG9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { PresenceMember, PresenceReply, PresenceFromOwner, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, Millis } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { Audience, type AudienceEffect } from "./audience.ts";
import { PresenceUpward, type PresenceUpwardOptions } from "./presence-upward.ts";
import { PresenceView, type PresenceUpdate } from "./presence-view.ts";

export type PresenceRelayInput =
  | { kind: "enter"; connection: ConnectionId; member: PresenceMember }
  | { kind: "leave"; connection: ConnectionId }
  /** The connection reads more slowly than the gateway sends. */
  | { kind: "behind"; connection: ConnectionId }
  | { kind: "keeping-up"; connection: ConnectionId }
  | { kind: "fields"; connection: ConnectionId; fields: readonly PresenceField[] }
  | { kind: "from-owner"; message: PresenceFromOwner }
  | { kind: "answer"; answer: PresenceReply }
  | { kind: "no-responders" }
  /** From now on no message of the room is missed. Earlier ones may have been. */
  | { kind: "attached" }
  | { kind: "detached" }
  /** `level`: the gateway's new shed level. */
  | { kind: "shed"; level: number }
  /** All inputs of this turn of the event loop have arrived, or something is due. */
  | { kind: "tick" };

export type PresenceRelayEffect =
  | { kind: "send-to-owner"; message: PresenceToOwner }
  | AudienceEffect
  | { kind: "refuse"; connection: ConnectionId }
  /** The owner does not answer, and may be gone. */
  | { kind: "owner-silent" }
  | { kind: "synced" };

export type PresenceRelayOptions = PresenceUpwardOptions;

const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

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
    if (now >= this.#up.watchAt && this.#up.watch(now) && this.#attached) {
      this.#up.receiveSilenceReported(now);
      effects.push({ kind: "owner-silent" });
    }
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
