/**
 * Who of this gateway is in a room, and saying so to the room's owner: each change as it comes, and all of it again
 * until the owner has heard the last. One client is one member, on however many connections for a moment.
 */

import type { Member, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis } from "../../shared/ids.ts";
import { Few } from "../../shared/few.ts";
import { SeldomSet } from "../../shared/seldom.ts";
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

/** `connections`: nearly always one; a list for each would weigh as much as the member. */
type Here = { member: Member; connections: ConnectionId | readonly ConnectionId[]; inputAt: Millis };

/** The owner said that it missed something: all is said again, but not more often than this. */
const WHOLE_MS_MIN = 100;
const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;

export class PresenceMembers {
  readonly #options: PresenceMembersOptions;
  readonly #here = new Few<ClientId, Here>(clientOf);
  readonly #byConnection = new Map<ConnectionId, Here>();
  readonly #entered = new SeldomSet<ClientId>();
  readonly #exited = new SeldomSet<ClientId>();
  #version: number;
  #heard = false;
  #unheardSince: Millis | undefined;
  /** The next thing to say is all of it. */
  #isWholeDue = true;
  #saidAt = LONG_AGO;
  #wholeSaidAt = LONG_AGO;

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

  get(client: ClientId): Member | undefined {
    return this.#here.get(client)?.member;
  }

  of(connection: ConnectionId): Member | undefined {
    return this.#byConnection.get(connection)?.member;
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
    const before = this.#byConnection.get(connection);
    const gone = before === undefined || before.member.client === member.client ? undefined : this.leave(connection);
    const here = this.#here.get(member.client);
    if (here === undefined) {
      const entered: Here = { member, connections: connection, inputAt: now };
      this.#here.set(entered);
      this.#byConnection.set(connection, entered);
      this.#say(member.client);
      return gone;
    }
    const others = listOf(here).filter((other) => other !== connection);
    here.connections = others.length === 0 ? connection : [...others, connection];
    this.#byConnection.set(connection, here);
    here.inputAt = now;
    this.#become(here, member);
    return gone;
  }

  /** The member that is gone with it, if it was its last connection. */
  leave(connection: ConnectionId): ClientId | undefined {
    const here = this.#byConnection.get(connection);
    if (here === undefined) return undefined;
    const { client } = here.member;
    this.#byConnection.delete(connection);
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
    const here = this.#byConnection.get(connection);
    if (here === undefined) return false;
    here.inputAt = now;
    if (!here.member.spectator) return false;
    this.#become(here, { ...here.member, spectator: false });
    return true;
  }

  findSpectators(now: Millis): void {
    for (const here of this.#here.values()) {
      if (now - here.inputAt >= this.#options.spectatorAfterMs) this.#become(here, { ...here.member, spectator: true });
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
    if (this.#entered.size > 0 || this.#exited.size > 0) return this.#saidAt;
    return this.#heard ? inStep(this.#saidAt + this.#options.keepaliveMs) : ((this.#saidAt + this.#options.repeatMs) as Millis);
  }

  /** What to say now. */
  takeDue(epoch: Epoch, now: Millis): (PresenceToOwner & { kind: "members" }) | undefined {
    if (now < this.dueAt) return undefined;
    const { gateway } = this.#options;
    const hasChanged = this.#entered.size > 0 || this.#exited.size > 0;
    const isWhole = this.#isWholeDue || (!hasChanged && !this.#heard);
    const entered = isWhole ? this.#all() : [...this.#entered].map((client) => this.#here.get(client)!.member);
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

  #all(): Member[] {
    return [...this.#here.values()].map(({ member }) => member);
  }

  #become(here: Here, member: Member): void {
    const { user, name, canWrite, spectator } = here.member;
    if (user === member.user && name === member.name && canWrite === member.canWrite && spectator === member.spectator) return;
    here.member = member;
    this.#say(member.client);
  }

  #say(client: ClientId): void {
    this.#exited.delete(client);
    this.#entered.add(client);
  }
}

function clientOf({ member }: Here): ClientId {
  return member.client;
}

function listOf({ connections }: Here): readonly ConnectionId[] {
  return typeof connections === "number" ? [connections] : connections;
}
