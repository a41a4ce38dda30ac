/**
 * A room's presence on this gateway: who of it is in the room and what they show, on its way to the room's owner; and
 * what the owner tells of everybody, on its way to them. Takes what happened, answers with what should happen next.
 * Deterministic, and apart from edits.
 *
 * Two promises, whatever NATS loses: what a member shows comes to be shown or is told again, and members are told of
 * everybody who is there and of nobody who is not. Rules PRG1 to PRG9.
 */

import { assertNever } from "../shared/assert.ts";
import type { Member, MemberState, PresenceAnswer, PresenceFromOwner, PresenceToOwner, Standing } from "../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, Millis } from "../shared/ids.ts";
import { type ParticipantNumber, type PresenceField, VIEWPORT } from "../shared/wire/presence.ts";
import { decodeRectangle, type Rectangle } from "../shared/wire/positions.ts";
import type { LaneName } from "./lanes.ts";
import type { ConnectionId } from "./ports.ts";
import { PresenceMembers, type PresenceMembersOptions } from "./presence-members.ts";
import { PresenceOutbox, type PresenceOutboxOptions } from "./presence-outbox.ts";
import { Reach, type ReachEffect } from "./presence-reach.ts";
import { isSameStanding, PresenceView, type Tidings } from "./presence-view.ts";

export type PresenceInput =
  | { kind: "enter"; connection: ConnectionId; member: Member }
  | { kind: "leave"; connection: ConnectionId }
  /** It does not take what it is sent as fast as that comes. */
  | { kind: "behind"; connection: ConnectionId }
  | { kind: "keeping-up"; connection: ConnectionId }
  | { kind: "fields"; connection: ConnectionId; fields: readonly PresenceField[] }
  /** An edit, or anything else that shows that somebody is there. */
  | { kind: "input"; connection: ConnectionId }
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
  | ReachEffect
  | { kind: "publish-mode"; standing: Standing }
  /** Everything there is, to those who are new. */
  | { kind: "welcome"; connections: readonly ConnectionId[]; whole: Uint8Array; standing: Standing }
  | { kind: "refuse"; connection: ConnectionId }
  /** The owner does not answer: is it still there? */
  | { kind: "owner-silent" }
  | { kind: "synced" };

export type PresenceOptions = PresenceMembersOptions & PresenceOutboxOptions & { readonly ownerSilenceMsMax: number };

/** How often a quiet room is looked after. */
const WATCH_MS = 5_000;
/** Of a message of states; the rest goes into the next. */
const STATES_BYTES_MAX = 256 * 1024;

/** The last step of the drop order, which only a room's owner takes. */
const FULL_FROM_SHED = 7;

const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

export class RoomPresence {
  readonly #options: PresenceOptions;
  readonly #members: PresenceMembers;
  readonly #outbox: PresenceOutbox;
  readonly #view = new PresenceView();
  readonly #reach = new Reach(() => this.#view.everything);
  /** Where each member of here looks. */
  readonly #looks = new Map<ClientId, Rectangle>();
  #shedLevel = 0;
  #standing: Standing = { mode: "flat", participants: 0, presencePerSecond: 30, shed: 0 };
  /** Those who have not been told the whole yet. */
  #arrived = new Set<ConnectionId>();
  /** Those who are told nothing until they have taken what they were sent. */
  readonly #behind = new Set<ConnectionId>();
  #attached = false;
  #statesNumber: number;
  #askedAt = AT_ONCE;
  /** Members of here that the room has been told of, each under its number. */
  readonly #known = new Map<ClientId, ParticipantNumber>();
  #watchAt: Millis;
  #silenceToldAt = AT_ONCE;

  /** `lastNumber`: above all numbers and versions that this gateway ever used in the room. */
  constructor(options: PresenceOptions, lastNumber: number, now: Millis) {
    this.#options = options;
    this.#members = new PresenceMembers(options, lastNumber);
    this.#outbox = new PresenceOutbox(options);
    this.#statesNumber = lastNumber;
    this.#watchAt = (now + WATCH_MS) as Millis;
  }

  get members(): number {
    return this.#members.size;
  }

  /** Nobody is here, and nobody takes them to be. */
  get isDone(): boolean {
    return this.#members.isDone;
  }

  /** Over its budget the room takes nobody new for a moment; who was just there comes back. */
  isFullFor(client: ClientId): boolean {
    return this.#standing.shed >= FULL_FROM_SHED && !this.#view.has(client);
  }

  get lastNumber(): number {
    return Math.max(this.#members.version, this.#statesNumber);
  }

  /** When the next tick has something to do. */
  get dueAt(): Millis {
    const welcomeAt = this.#arrived.size > 0 && !this.#view.isEmpty ? AT_ONCE : NEVER;
    const reachAt = this.#reach.dueAt ?? NEVER;
    if (!this.#attached) return Math.min(welcomeAt, reachAt, this.#watchAt) as Millis;
    const syncAt = this.#view.isBehind ? this.#askedAt + this.#options.repeatMs : NEVER;
    return Math.min(this.#members.dueAt, this.#outbox.dueAt, syncAt, welcomeAt, reachAt, this.#watchAt) as Millis;
  }

  receive(input: PresenceInput, now: Millis): PresenceEffect[] {
    const effects: PresenceEffect[] = [];
    switch (input.kind) {
      case "enter":
        this.#enter(input.connection, input.member, now);
        break;
      case "leave":
        this.#leave(input.connection, effects);
        break;
      case "behind":
        this.#receiveBehind(input.connection, effects);
        break;
      case "keeping-up":
        if (this.#behind.delete(input.connection)) this.#arrived.add(input.connection);
        break;
      case "fields":
        this.#receiveFields(input.connection, input.fields, now, effects);
        break;
      case "input":
        this.#members.receiveInput(input.connection, now);
        break;
      case "from-owner":
        this.#receiveFromOwner(input.message, now, effects);
        break;
      case "answer":
        this.#receiveAnswer(input.answer, now, effects);
        break;
      case "no-responders":
        if (this.#members.size === 0) this.#members.receiveHeard(this.#members.version); // Nobody is left to take them to be here.
        break;
      case "attached":
        this.#attached = true;
        this.#view.receiveDoubt();
        this.#askedAt = AT_ONCE;
        this.#sayAllAgain();
        break;
      case "detached":
        this.#attached = false;
        break;
      case "shed":
        this.#changeStanding(this.#standing, input.level, now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    return effects;
  }

  #enter(connection: ConnectionId, member: Member, now: Millis): void {
    this.#members.enter(connection, member, now);
    if (!this.#behind.has(connection)) this.#arrived.add(connection);
    const number = this.#view.numberOf(member.client); // Of one that comes from another gateway.
    if (number !== undefined) this.#known.set(member.client, number);
  }

  /** Presence goes first: what else waits for it must not wait longer. Once it keeps up again it is told the whole. */
  #receiveBehind(connection: ConnectionId, effects: PresenceEffect[]): void {
    if (this.#members.of(connection) === undefined) return;
    this.#behind.add(connection);
    this.#arrived.delete(connection);
    effects.push(...this.#reach.exit(connection));
  }

  #leave(connection: ConnectionId, effects: PresenceEffect[]): void {
    this.#arrived.delete(connection);
    this.#behind.delete(connection);
    const gone = this.#members.leave(connection);
    if (gone !== undefined) {
      this.#outbox.remove(gone);
      this.#looks.delete(gone);
    }
    effects.push(...this.#reach.exit(connection));
  }

  #receiveFields(connection: ConnectionId, fields: readonly PresenceField[], now: Millis, effects: PresenceEffect[]): void {
    const member = this.#members.of(connection);
    if (member === undefined) return;
    this.#members.receiveInput(connection, now);
    if (!this.#outbox.set(member.client, fields)) effects.push({ kind: "refuse", connection });
  }

  #receiveFromOwner(message: PresenceFromOwner, now: Millis, effects: PresenceEffect[]): void {
    if (!this.#hear(message.epoch)) return;
    switch (message.kind) {
      case "news":
        return this.#tell(this.#view.receiveNews(message), now, effects);
      case "head":
        this.#view.receiveHead(message.number);
        if (this.#view.isOfThePast) return; // Of whom it counts, a new owner has not heard everybody yet.
        return this.#changeStanding(message.standing, this.#shedLevel, now, effects);
      default:
        assertNever(message);
    }
  }

  #receiveAnswer(answer: PresenceAnswer, now: Millis, effects: PresenceEffect[]): void {
    if (!this.#hear(answer.epoch)) return;
    switch (answer.kind) {
      case "heard":
        this.#members.receiveHeard(answer.version);
        return this.#view.receiveHead(answer.number);
      case "missed":
        return this.#members.sayAllAgain();
      case "whole":
        effects.push({ kind: "synced" });
        this.#tell(this.#view.receiveWhole(answer), now, effects);
        return this.#changeStanding(answer.standing, this.#shedLevel, now, effects);
      default:
        assertNever(answer);
    }
  }

  /** Whether to listen to what was said in that epoch. */
  #hear(epoch: Epoch): boolean {
    const heard = this.#view.receiveEpoch(epoch);
    if (heard === "new-epoch") {
      this.#askedAt = AT_ONCE;
      this.#members.receiveNewOwner();
      this.#outbox.tellAgain();
    }
    return heard !== "past";
  }

  #sayAllAgain(): void {
    this.#members.sayAllAgain();
    this.#outbox.tellAgain();
  }

  #tell(tidings: readonly Tidings[], now: Millis, effects: PresenceEffect[]): void {
    for (const tiding of tidings) {
      const { news } = tiding;
      for (const { number, fields } of news.states) {
        const client = this.#view.clientOf(number);
        if (client !== undefined) this.#outbox.receiveShown(client, fields);
      }
      for (const { client, number } of news.present) this.#receiveNumber(client, number);
      if (news.gone.length > 0 || news.whole) this.#sayWhatIsMissing();
      effects.push(...this.#reach.tell(tiding, this.#soleSenderOf(news), now));
    }
  }

  /** Under another number than before it is another to the owner, of whom nothing is shown. */
  #receiveNumber(client: ClientId, number: ParticipantNumber): void {
    if (!this.#members.has(client)) return;
    const before = this.#known.get(client);
    if (before !== undefined && before !== number) this.#outbox.tellAgain([client]);
    this.#known.set(client, number);
  }

  /** The owner takes somebody for gone who is here: this gateway was silent, or what it said was lost. */
  #sayWhatIsMissing(): void {
    let isMissing = false;
    for (const client of this.#known.keys()) {
      if (this.#view.has(client)) continue;
      this.#known.delete(client);
      isMissing ||= this.#members.has(client);
    }
    if (isMissing) this.#sayAllAgain();
  }

  /** The one here whose doing all of it is, and who knows it already. */
  #soleSenderOf({ whole, present, gone, states }: Tidings["news"]): ConnectionId | undefined {
    const [state] = states;
    if (whole || present.length > 0 || gone.length > 0 || states.length > 1 || state === undefined) return undefined;
    const client = this.#view.clientOf(state.number);
    return client === undefined ? undefined : this.#members.soleConnection(client);
  }

  /** `shedLevel`: this gateway's own. The members are told, and reached accordingly from now on. */
  #changeStanding(standing: Standing, shedLevel: number, now: Millis, effects: PresenceEffect[]): void {
    const before = this.#told;
    this.#standing = standing;
    this.#shedLevel = shedLevel;
    if (!isSameStanding(before, this.#told)) effects.push({ kind: "publish-mode", standing: this.#told });
    effects.push(...this.#reach.changeRule(this.#told, now));
  }

  /** As the members are told it. */
  get #told(): Standing {
    return { ...this.#standing, shed: Math.max(this.#standing.shed, this.#shedLevel) };
  }

  #receiveTick(now: Millis, effects: PresenceEffect[]): void {
    if (now >= this.#watchAt) this.#watch(now, effects);
    effects.push(...this.#reach.tick(now));
    if (this.#arrived.size > 0 && !this.#view.isEmpty) {
      effects.push({ kind: "welcome", connections: [...this.#arrived], whole: this.#view.whole, standing: this.#told });
      for (const connection of this.#arrived) effects.push(...this.#enterReach(connection));
      this.#arrived = new Set();
    }
    if (!this.#attached) return;
    const told = effects.length;
    const members = this.#members.takeDue(this.#view.epoch, now);
    if (members !== undefined) this.#tellMembers(members, effects);
    const { fresh, again } = this.#outbox.takeDue(this.#standing.presencePerSecond, now);
    for (const { client, fields } of fresh) this.#look(client, fields, effects);
    this.#tellStates(fresh, true, effects);
    this.#tellStates(again, false, effects);
    if (effects.length > told) this.#watchAt = Math.min(this.#watchAt, now + this.#options.repeatMs) as Millis;
    if (!this.#view.isBehind || now - this.#askedAt < this.#options.repeatMs) return;
    this.#askedAt = now;
    effects.push({ kind: "tell", message: { kind: "sync", gateway: this.#options.gateway } });
  }

  #tellMembers(members: PresenceToOwner & { kind: "members" }, effects: PresenceEffect[]): void {
    effects.push({ kind: "tell", message: members });
    for (const member of members.entered) for (const connection of this.#members.connectionsOf(member.client)) this.#reach.changeLane(connection, laneOf(member));
  }

  #enterReach(connection: ConnectionId): ReachEffect[] {
    const member = this.#members.of(connection);
    return member === undefined ? [] : this.#reach.enter(connection, laneOf(member), this.#looks.get(member.client));
  }

  /** Views go on at the pace at which they are told. */
  #look(client: ClientId, fields: readonly PresenceField[], effects: PresenceEffect[]): void {
    const viewport = fields.find(({ name }) => name === VIEWPORT);
    if (viewport === undefined) return;
    const view = decodeRectangle(viewport.value);
    if (view === undefined) this.#looks.delete(client);
    else this.#looks.set(client, view);
    for (const connection of this.#members.connectionsOf(client)) effects.push(...this.#reach.look(connection, view));
  }

  #tellStates(states: readonly MemberState[], fresh: boolean, effects: PresenceEffect[]): void {
    const { gateway } = this.#options;
    for (const part of partsOf(states)) {
      this.#statesNumber += 1;
      effects.push({ kind: "tell", message: { kind: "states", gateway, number: this.#statesNumber, fresh, states: part } });
    }
  }

  #watch(now: Millis, effects: PresenceEffect[]): void {
    this.#members.findSpectators(now);
    this.#outbox.findUnshown((client, name) => this.#view.shown(client, name), now);
    const { unheardSince } = this.#members;
    const isWaiting = unheardSince !== undefined || this.#outbox.hasUnshown;
    this.#watchAt = (now + (isWaiting ? this.#options.repeatMs : WATCH_MS)) as Millis;
    if (!this.#attached || unheardSince === undefined || now - Math.max(unheardSince, this.#silenceToldAt) < this.#options.ownerSilenceMsMax) return;
    this.#silenceToldAt = now;
    effects.push({ kind: "owner-silent" });
  }
}

function laneOf({ spectator }: Member): LaneName {
  return spectator ? "spectators" : "editors";
}

/** In messages that NATS carries. */
function partsOf(states: readonly MemberState[]): MemberState[][] {
  const parts: MemberState[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const state of states) {
    const size = state.fields.reduce((sum, { name, value }) => sum + name.length + value.byteLength, 0);
    if (bytes + size > STATES_BYTES_MAX) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(state);
    bytes += size;
  }
  return parts;
}
