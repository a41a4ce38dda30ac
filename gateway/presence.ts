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
import type { ParticipantNumber, PresenceField } from "../shared/wire/presence.ts";
import type { ConnectionId } from "./ports.ts";
import { PresenceMembers, type PresenceMembersOptions } from "./presence-members.ts";
import { PresenceOutbox, type PresenceOutboxOptions } from "./presence-outbox.ts";
import { isSameStanding, PresenceView, type Tidings } from "./presence-view.ts";

export type PresenceInput =
  | { kind: "enter"; connection: ConnectionId; member: Member }
  | { kind: "leave"; connection: ConnectionId }
  | { kind: "fields"; connection: ConnectionId; fields: readonly PresenceField[] }
  /** An edit, or anything else that shows that somebody is there. */
  | { kind: "input"; connection: ConnectionId }
  | { kind: "from-owner"; message: PresenceFromOwner }
  | { kind: "answer"; answer: PresenceAnswer }
  | { kind: "no-responders" }
  /** From now on nothing said in the room is missed; what was said before may have been. */
  | { kind: "attached" }
  | { kind: "detached" }
  /** All of this turn of the event loop is in, or something has fallen due. */
  | { kind: "tick" };

export type PresenceEffect =
  | { kind: "tell"; message: PresenceToOwner }
  | { kind: "publish"; news: Uint8Array; except: ConnectionId | undefined }
  | { kind: "publish-mode"; standing: Standing }
  /** Everything there is, to those who are new; from then on they listen. */
  | { kind: "welcome"; connections: readonly ConnectionId[]; whole: Uint8Array; standing: Standing }
  | { kind: "unlisten"; connection: ConnectionId }
  | { kind: "refuse"; connection: ConnectionId }
  /** The owner does not answer: is it still there? */
  | { kind: "owner-silent" }
  | { kind: "synced" };

export type PresenceOptions = PresenceMembersOptions & PresenceOutboxOptions & { readonly ownerSilenceMsMax: number };

/** How often a quiet room is looked after. */
const WATCH_MS = 5_000;
/** Of a message of states; the rest goes into the next. */
const STATES_BYTES_MAX = 256 * 1024;

const AT_ONCE = Number.NEGATIVE_INFINITY as Millis;
const NEVER = Number.POSITIVE_INFINITY as Millis;

export class RoomPresence {
  readonly #options: PresenceOptions;
  readonly #members: PresenceMembers;
  readonly #outbox: PresenceOutbox;
  readonly #view = new PresenceView();
  #standing: Standing = { mode: "flat", participants: 0, presencePerSecond: 30, shed: 0 };
  /** Those who have not been told the whole yet. */
  #arrived = new Set<ConnectionId>();
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

  get lastNumber(): number {
    return Math.max(this.#members.version, this.#statesNumber);
  }

  /** When the next tick has something to do. */
  get dueAt(): Millis {
    const welcomeAt = this.#arrived.size > 0 && !this.#view.isEmpty ? AT_ONCE : NEVER;
    if (!this.#attached) return Math.min(welcomeAt, this.#watchAt) as Millis;
    const syncAt = this.#view.isBehind ? this.#askedAt + this.#options.repeatMs : NEVER;
    return Math.min(this.#members.dueAt, this.#outbox.dueAt, syncAt, welcomeAt, this.#watchAt) as Millis;
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
      case "fields":
        this.#receiveFields(input.connection, input.fields, now, effects);
        break;
      case "input":
        this.#members.receiveInput(input.connection, now);
        break;
      case "from-owner":
        this.#receiveFromOwner(input.message, effects);
        break;
      case "answer":
        this.#receiveAnswer(input.answer, effects);
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
    this.#arrived.add(connection);
    const number = this.#view.numberOf(member.client); // Of one that comes from another gateway.
    if (number !== undefined) this.#known.set(member.client, number);
  }

  #leave(connection: ConnectionId, effects: PresenceEffect[]): void {
    const isListening = this.#members.of(connection) !== undefined && !this.#arrived.delete(connection);
    const gone = this.#members.leave(connection);
    if (gone !== undefined) this.#outbox.remove(gone);
    if (isListening) effects.push({ kind: "unlisten", connection });
  }

  #receiveFields(connection: ConnectionId, fields: readonly PresenceField[], now: Millis, effects: PresenceEffect[]): void {
    const member = this.#members.of(connection);
    if (member === undefined) return;
    this.#members.receiveInput(connection, now);
    if (!this.#outbox.set(member.client, fields)) effects.push({ kind: "refuse", connection });
  }

  #receiveFromOwner(message: PresenceFromOwner, effects: PresenceEffect[]): void {
    if (!this.#hear(message.epoch)) return;
    switch (message.kind) {
      case "news":
        return this.#tell(this.#view.receiveNews(message), effects);
      case "head":
        this.#view.receiveHead(message.number);
        return this.#receiveStanding(message.standing, effects);
      default:
        assertNever(message);
    }
  }

  #receiveAnswer(answer: PresenceAnswer, effects: PresenceEffect[]): void {
    if (!this.#hear(answer.epoch)) return;
    switch (answer.kind) {
      case "heard":
        this.#members.receiveHeard(answer.version);
        return this.#view.receiveHead(answer.number);
      case "missed":
        return this.#members.sayAllAgain();
      case "whole":
        effects.push({ kind: "synced" });
        this.#tell(this.#view.receiveWhole(answer), effects);
        return this.#receiveStanding(answer.standing, effects);
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

  #tell(tidings: readonly Tidings[], effects: PresenceEffect[]): void {
    for (const { bytes, news } of tidings) {
      for (const { number, fields } of news.states) {
        const client = this.#view.clientOf(number);
        if (client !== undefined) this.#outbox.receiveShown(client, fields);
      }
      for (const { client, number } of news.present) this.#receiveNumber(client, number);
      if (news.gone.length > 0 || news.whole) this.#sayWhatIsMissing();
      effects.push({ kind: "publish", news: bytes, except: this.#soleSenderOf(news) });
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

  #receiveStanding(standing: Standing, effects: PresenceEffect[]): void {
    if (!isSameStanding(this.#standing, standing)) effects.push({ kind: "publish-mode", standing });
    this.#standing = standing;
  }

  #receiveTick(now: Millis, effects: PresenceEffect[]): void {
    if (now >= this.#watchAt) this.#watch(now, effects);
    if (this.#arrived.size > 0 && !this.#view.isEmpty) {
      effects.push({ kind: "welcome", connections: [...this.#arrived], whole: this.#view.whole, standing: this.#standing });
      this.#arrived = new Set();
    }
    if (!this.#attached) return;
    const told = effects.length;
    const members = this.#members.takeDue(this.#view.epoch, now);
    if (members !== undefined) effects.push({ kind: "tell", message: members });
    const { fresh, again } = this.#outbox.takeDue(this.#standing.presencePerSecond, now);
    this.#tellStates(fresh, true, effects);
    this.#tellStates(again, false, effects);
    if (effects.length > told) this.#watchAt = Math.min(this.#watchAt, now + this.#options.repeatMs) as Millis;
    if (!this.#view.isBehind || now - this.#askedAt < this.#options.repeatMs) return;
    this.#askedAt = now;
    effects.push({ kind: "tell", message: { kind: "sync", gateway: this.#options.gateway } });
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
