/**
 * A room's presence on this gateway: what its members show on the way to the room's owner, and what the owner tells of
 * everybody on the way to them. Takes what happened, answers with what should happen next. Deterministic, and apart
 * from edits.
 *
 * Two promises, whatever NATS loses: what a member shows comes to be shown or is told again, and members are told of
 * everybody who is there and of nobody who is not. Rules PRG1 to PRG9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Member, PresenceAnswer, PresenceFromOwner, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, Millis } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { type DownwardEffect, PresenceDownward } from "./presence-downward.ts";
import { PresenceUpward, type PresenceUpwardOptions } from "./presence-upward.ts";
import { PresenceView, type Tidings } from "./presence-view.ts";

export type PresenceInput =
  | { kind: "enter"; connection: ConnectionId; member: Member }
  | { kind: "leave"; connection: ConnectionId }
  /** It does not take what it is sent as fast as that comes. */
  | { kind: "behind"; connection: ConnectionId }
  | { kind: "keeping-up"; connection: ConnectionId }
  | { kind: "fields"; connection: ConnectionId; fields: readonly PresenceField[] }
  | { kind: "from-owner"; message: PresenceFromOwner }
  | { kind: "answer"; answer: PresenceAnswer }
  | { kind: "no-responders" }
  /** From now on nothing said in the room is missed; what was said before may have been. */
  | { kind: "attached" }
  | { kind: "detached" }
  /** The gateway leaves out more or less than before: how far down the drop order it is. */
  | { kind: "shed"; level: number }
  /** All of this turn of the event loop is in, or something has fallen due. */
  | { kind: "tick" };

export type PresenceEffect =
  | { kind: "tell"; message: PresenceToOwner }
  | DownwardEffect
  | { kind: "refuse"; connection: ConnectionId }
  /** The owner does not answer: is it still there? */
  | { kind: "owner-silent" }
  | { kind: "synced" };

export type PresenceOptions = PresenceUpwardOptions;

const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

export class RoomPresence {
  readonly #options: PresenceOptions;
  readonly #view = new PresenceView();
  readonly #up: PresenceUpward;
  readonly #down: PresenceDownward;
  #attached = false;
  #askedAt = AT_ONCE;

  /** `lastNumber`: above all numbers and versions that this gateway ever used in the room. */
  constructor(options: PresenceOptions, lastNumber: number, now: Millis) {
    this.#options = options;
    this.#up = new PresenceUpward(options, this.#view, lastNumber, now);
    this.#down = new PresenceDownward(this.#up.members, this.#view);
  }

  get members(): number {
    return this.#up.members.size;
  }

  /** Nobody is here, and nobody takes them to be. */
  get isDone(): boolean {
    return this.#up.members.isDone;
  }

  knows(client: ClientId): boolean {
    return this.#view.has(client);
  }

  /** Over its budget the room takes nobody new for a moment; who was just there comes back. Undefined: the owner has not said yet. */
  isFullFor(client: ClientId): boolean | undefined {
    return this.#view.isEmpty ? undefined : this.#down.isFull && !this.#view.has(client);
  }

  get lastNumber(): number {
    return this.#up.lastNumber;
  }

  /** When the next tick has something to do. */
  get dueAt(): Millis {
    const always = Math.min(this.#down.dueAt, this.#up.watchAt);
    if (!this.#attached) return always as Millis;
    const syncAt = this.#view.isBehind ? this.#askedAt + this.#options.repeatMs : NEVER;
    return Math.min(always, this.#up.dueAt, syncAt) as Millis;
  }

  /** Whether there is something to tell: a spectator is an editor again. */
  receiveInput(connection: ConnectionId, now: Millis): boolean {
    return this.#up.members.receiveInput(connection, now);
  }

  receive(input: PresenceInput, now: Millis): PresenceEffect[] {
    switch (input.kind) {
      case "enter":
        return this.#down.enter(input.connection, this.#up.enter(input.connection, input.member, now));
      case "leave":
        return this.#down.leave(input.connection, this.#up.leave(input.connection));
      case "behind":
        return this.#down.receiveBehind(input.connection);
      case "keeping-up":
        this.#down.receiveKeepingUp(input.connection);
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
        this.#view.receiveDoubt();
        this.#askedAt = AT_ONCE;
        this.#up.sayAllAgain();
        return [];
      case "detached":
        this.#attached = false;
        return [];
      case "shed":
        return this.#down.receiveShed(input.level, now);
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #receiveFromOwner(message: PresenceFromOwner, now: Millis): PresenceEffect[] {
    if (!this.#hear(message.epoch)) return [];
    switch (message.kind) {
      case "news":
        return this.#tell(this.#view.receiveNews(message), now);
      case "head":
        this.#view.receiveHead(message.number);
        // Of whom it counts, a new owner has not heard everybody yet.
        return this.#view.isOfThePast ? [] : this.#down.receiveStanding(message.standing, now);
      default:
        return assertNever(message);
    }
  }

  #receiveAnswer(answer: PresenceAnswer, now: Millis): PresenceEffect[] {
    if (!this.#hear(answer.epoch)) return [];
    switch (answer.kind) {
      case "heard":
        this.#up.members.receiveHeard(answer.version);
        this.#view.receiveHead(answer.number);
        return [];
      case "missed":
        this.#up.members.sayAllAgain();
        return [];
      case "whole":
        return [
          { kind: "synced" },
          ...this.#tell(this.#view.receiveWhole(answer), now),
          ...this.#down.receiveStanding(answer.standing, now),
        ];
      default:
        return assertNever(answer);
    }
  }

  /** Whether to listen to what was said in that epoch. */
  #hear(epoch: Epoch): boolean {
    const heard = this.#view.receiveEpoch(epoch);
    if (heard === "new-epoch") {
      this.#askedAt = AT_ONCE;
      this.#up.receiveNewOwner();
    }
    return heard !== "past";
  }

  #tell(tidings: readonly Tidings[], now: Millis): PresenceEffect[] {
    return tidings.flatMap((tiding) => {
      this.#up.receiveNews(tiding.news);
      return this.#down.tell(tiding, now);
    });
  }

  #receiveTick(now: Millis): PresenceEffect[] {
    const effects: PresenceEffect[] = [];
    if (now >= this.#up.watchAt && this.#up.watch(now) && this.#attached) {
      this.#up.receiveSilenceTold(now);
      effects.push({ kind: "owner-silent" });
    }
    effects.push(...this.#down.tick(now));
    if (!this.#attached) return effects;
    const { messages, entered, shown } = this.#up.takeDue(this.#down.presencePerSecond, now);
    for (const message of messages) effects.push({ kind: "tell", message });
    this.#down.changeLanes(entered);
    effects.push(...this.#down.look(shown));
    if (!this.#view.isBehind || now < this.#askedAt + this.#options.repeatMs) return effects;
    this.#askedAt = now;
    effects.push({ kind: "tell", message: { kind: "sync", gateway: this.#options.gateway } });
    return effects;
  }
}
