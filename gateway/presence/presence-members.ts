/**
 * Who of this gateway is in a room, and saying so to the room's owner: a change as it comes, those that follow it at
 * once together, and all of it again until the owner has heard the last. One client is one member, on however many
 * connections for a moment.
 */

import type { Member, MemberState, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis } from "../../shared/ids.ts";
import { FEW, Few } from "../../shared/few.ts";
import { SeldomSet } from "../../shared/seldom.ts";
import type { ParticipantNumber } from "../../shared/wire/presence.ts";
import { inStep } from "./in-step.ts";
import type { ConnectionId } from "../ports.ts";

export type PresenceMembersOptions = {
  readonly gateway: GatewayId;
  /** Unheard for so long, it is said again. */
  readonly repeatMs: number;
  /** How often an owner that has heard all is asked whether it still knows. */
  readonly keepaliveMs: number;
  /** A member without input for so long is a spectator. */
  readonly spectatorAfterMs: number;
};

/** One object, there are very many. `connections`: nearly always one, without a list. `number`: under which the room has been told of it. */
type Here = { -readonly [Field in keyof Member]: Member[Field] } & {
  connections: ConnectionId | readonly ConnectionId[];
  inputAt: Millis;
  number: ParticipantNumber | undefined;
};

/** A crowd comes one by one, and each change on its own costs the owner, all gateways and everybody in the room a message. */
const CHANGES_MS_MIN = 100;
/** Whoever comes so soon after the first into a room that was empty came with it: nobody has been there to see who comes. */
const CROWD_MS = 500;
/** The owner said that it missed something: all is said again, but not more often than this. */
const WHOLE_MS_MIN = 100;
const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;

export class PresenceMembers {
  readonly #options: PresenceMembersOptions;
  readonly #here = new Few<ClientId, Here>(clientOf);
  /** Undefined: there are few, which are looked through. */
  #byConnection: Map<ConnectionId, Here> | undefined;
  readonly #entered = new SeldomSet<ClientId>();
  readonly #exited = new SeldomSet<ClientId>();
  #version: number;
  #heard = false;
  #unheardSince: Millis | undefined;
  /** The next thing to say is all of it. */
  #isWholeDue = true;
  #saidAt = LONG_AGO;
  #wholeSaidAt = LONG_AGO;
  /** The room was empty a moment ago, as far as is known here. */
  #wasEmpty = true;

  /** `version`: above all that this gateway ever used in the room. */
  constructor(options: PresenceMembersOptions, version: number) {
    this.#options = options;
    this.#version = version;
  }

  get size(): number {
    return this.#here.size;
  }

  get version(): number {
    return this.#version;
  }

  /** Nobody is here, and the owner knows. */
  get isDone(): boolean {
    return this.#here.size === 0 && this.#heard && this.#exited.size === 0;
  }

  /** The owner has not answered since. */
  get unheardSince(): Millis | undefined {
    return this.#unheardSince;
  }

  has(client: ClientId): boolean {
    return this.#here.has(client);
  }

  /** As it is now, and will be. */
  get(client: ClientId): Member | undefined {
    return this.#here.get(client);
  }

  of(connection: ConnectionId): Member | undefined {
    return this.#hereOver(connection);
  }

  /** The room is told of the client under that number. Returns what it was before; undefined: none, or the room took it for gone. */
  receiveNumber(client: ClientId, number: ParticipantNumber): ParticipantNumber | undefined {
    const here = this.#here.get(client);
    const before = here?.number;
    if (here !== undefined) here.number = number;
    return before;
  }

  /** Whether the room, which `has` these clients, takes somebody for gone whom it had been told of. */
  receiveGone(has: (client: ClientId) => boolean): boolean {
    let isMissing = false;
    for (const here of this.#here.values()) {
      if (here.number === undefined || has(here.client)) continue;
      here.number = undefined;
      isMissing = true;
    }
    return isMissing;
  }

  /** The client's connection, if it is the only one. */
  soleConnection(client: ClientId): ConnectionId | undefined {
    const connections = this.#here.get(client)?.connections;
    return typeof connections === "number" ? connections : undefined;
  }

  /** One, but for a moment after a reconnect: the newest last. */
  connectionsOf(client: ClientId): readonly ConnectionId[] {
    const here = this.#here.get(client);
    return here === undefined ? [] : listOf(here);
  }

  /** The member that is gone because the connection, its last, is another's from now on. */
  enter(connection: ConnectionId, member: Member, now: Millis): ClientId | undefined {
    const before = this.#hereOver(connection);
    const gone = before === undefined || before.client === member.client ? undefined : this.leave(connection);
    const here = this.#here.get(member.client);
    if (here === undefined) {
      const entered = hereOf(member, connection, now);
      this.#here.set(entered);
      this.#index(connection, entered);
      this.#say(member.client);
      return gone;
    }
    const others = listOf(here).filter((other) => other !== connection);
    here.connections = others.length === 0 ? connection : [...others, connection];
    this.#index(connection, here);
    here.inputAt = now;
    this.#become(here, member);
    return gone;
  }

  /** The member that is gone with it, if it was its last connection. */
  leave(connection: ConnectionId): ClientId | undefined {
    const here = this.#hereOver(connection);
    if (here === undefined) return undefined;
    const { client } = here;
    this.#byConnection?.delete(connection);
    const [left, ...others] = listOf(here).filter((other) => other !== connection);
    if (left !== undefined) {
      here.connections = others.length === 0 ? left : [left, ...others];
      return undefined;
    }
    this.#here.delete(client);
    this.#entered.delete(client);
    this.#exited.add(client);
    return client;
  }

  /** Any input makes an editor of a spectator again: whether it has. */
  receiveInput(connection: ConnectionId, now: Millis): boolean {
    const here = this.#hereOver(connection);
    if (here === undefined) return false;
    here.inputAt = now;
    return this.#receiveSpectator(here, false);
  }

  /** Somebody is in the room, over another gateway, who is to see at once who comes. */
  receiveOther(): void {
    this.#wasEmpty = false;
  }

  /** To be called every few seconds. */
  findSpectators(now: Millis): void {
    this.#wasEmpty = false;
    for (const here of this.#here.values()) {
      if (now - here.inputAt >= this.#options.spectatorAfterMs) this.#receiveSpectator(here, true);
    }
  }

  receiveHeard(version: number): void {
    this.#unheardSince = undefined;
    if (version === this.#version) this.#heard = true;
  }

  /** The owner does not know what it was told. */
  sayAllAgain(): void {
    this.#heard = false;
    this.#isWholeDue = true;
  }

  /** The owner is another and knows nothing: what the one before was told a moment ago holds nothing up. */
  receiveNewOwner(): void {
    this.#wholeSaidAt = LONG_AGO;
    this.sayAllAgain();
  }

  /** When something is to be said. */
  get dueAt(): Millis {
    if (this.#isWholeDue) return (this.#wholeSaidAt + WHOLE_MS_MIN) as Millis;
    if (this.#entered.size > 0 || this.#exited.size > 0) return Math.max(this.#saidAt + CHANGES_MS_MIN, this.#crowdIsInAt) as Millis;
    return this.#heard ? inStep(this.#saidAt + this.#options.keepaliveMs) : ((this.#saidAt + this.#options.repeatMs) as Millis);
  }

  /** What to say now. `shown`: what the owner is told in the same moment, and passes over of whom it does not know. */
  takeDue(epoch: Epoch, now: Millis, shown: readonly MemberState[] = []): (PresenceToOwner & { kind: "members" }) | undefined {
    const isShownOfNew = !this.#isWholeDue && shown.some(({ client }) => this.#entered.has(client));
    if (now < this.dueAt && !isShownOfNew) return undefined;
    const { gateway } = this.#options;
    const hasChanged = this.#entered.size > 0 || this.#exited.size > 0;
    const isWhole = this.#isWholeDue || (!hasChanged && !this.#heard);
    const entered = isWhole ? this.#all() : [...this.#entered].map((client) => copyOf(this.#here.get(client)!));
    const exited = isWhole ? [] : [...this.#exited];
    if (hasChanged || this.#version === 0) this.#version += 1;
    if (hasChanged) {
      this.#entered.clear();
      this.#exited.clear();
    }
    if (isWhole) this.#wholeSaidAt = now;
    this.#isWholeDue = false;
    this.#heard = false;
    this.#unheardSince ??= now;
    this.#saidAt = now;
    return { kind: "members", gateway, epoch, version: this.#version, whole: isWhole, entered, exited };
  }

  /** Who leaves is told of at once. */
  get #crowdIsInAt(): Millis {
    return this.#wasEmpty && this.#exited.size === 0 ? ((this.#wholeSaidAt + CROWD_MS) as Millis) : LONG_AGO;
  }

  #hereOver(connection: ConnectionId): Here | undefined {
    return this.#byConnection === undefined ? this.#here.findLast((here) => isOver(here, connection)) : this.#byConnection.get(connection);
  }

  /** Once that is so. */
  #index(connection: ConnectionId, here: Here): void {
    if (this.#byConnection !== undefined) this.#byConnection.set(connection, here);
    else if (this.#here.size > FEW)
      this.#byConnection = new Map([...this.#here.values()].flatMap((each) => listOf(each).map((over) => [over, each])));
  }

  #all(): Member[] {
    return [...this.#here.values()].map(copyOf);
  }

  #become(here: Here, { user, name, canWrite, spectator }: Member): void {
    if (here.user === user && here.name === name && here.canWrite === canWrite && here.spectator === spectator) return;
    Object.assign(here, { user, name, canWrite, spectator });
    this.#say(here.client);
  }

  /** Whether it was not so before. */
  #receiveSpectator(here: Here, spectator: boolean): boolean {
    if (here.spectator === spectator) return false;
    here.spectator = spectator;
    this.#say(here.client);
    return true;
  }

  #say(client: ClientId): void {
    this.#exited.delete(client);
    this.#entered.add(client);
  }
}

function clientOf({ client }: Here): ClientId {
  return client;
}

function hereOf({ client, user, name, canWrite, spectator }: Member, connection: ConnectionId, now: Millis): Here {
  return { client, user, name, canWrite, spectator, connections: connection, inputAt: now, number: undefined };
}

/** To be said: what is here goes on to change. */
function copyOf({ client, user, name, canWrite, spectator }: Member): Member {
  return { client, user, name, canWrite, spectator };
}

function isOver({ connections }: Here, connection: ConnectionId): boolean {
  return typeof connections === "number" ? connections === connection : connections.includes(connection);
}

function listOf({ connections }: Here): readonly ConnectionId[] {
  return typeof connections === "number" ? [connections] : connections;
}
