/**
 * The members of a room on this gateway, and their announcement to the room's owner. Changes in quick succession are
 * announced together, and a snapshot is repeated until the owner acknowledges the last version. A client is one member,
 * even if it briefly has several connections.
 */

import type { PresenceMember, PresenceMemberState, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis } from "../../shared/ids.ts";
import { SMALL_MAP_ENTRIES_MAX, SmallMap } from "../../shared/collections/small-map.ts";
import { LazySet } from "../../shared/collections/lazy-map.ts";
import type { ParticipantNumber } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";

/**
 * Quiet rooms act in steps of 250 ms, all at the same moment. If each room acted at a different moment, a few dozen
 * quiet rooms would keep an idle gateway awake.
 */
const STEP_MS = 250;

/** The given time, or the next step after it. */
export function inStep(at: number): Millis {
  return (Math.ceil(at / STEP_MS) * STEP_MS) as Millis;
}

export type PresenceMembersOptions = {
  readonly gateway: GatewayId;
  /** Interval after which an unacknowledged version is sent again. */
  readonly repeatMs: number;
  /** Interval at which the gateway asks an owner that has acknowledged the last version whether it still has it. */
  readonly keepaliveMs: number;
  /** Time without input after which a member becomes a spectator. */
  readonly spectatorAfterMs: number;
};

/** `connections`: the newest is last. `number`: the participant number that the owner assigned to the member. */
type Here = { -readonly [Field in keyof PresenceMember]: PresenceMember[Field] } & {
  connections: readonly ConnectionId[];
  inputAt: Millis;
  number: ParticipantNumber | undefined;
};

/** Interval between two announcements. Each announcement of a joining client costs the owner, all gateways and all members a message. */
const CHANGES_MS_MIN = 100;
/** Joins into an empty room are batched for this time, because no other member waits to see them. */
const JOIN_BATCH_MS = 500;
/** Minimum interval between two snapshots to an owner that reports a missing version. */
const SNAPSHOT_MS_MIN = 100;
const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;

export class PresenceMembers {
  readonly #options: PresenceMembersOptions;
  readonly #here = new SmallMap<ClientId, Here>(clientOf);
  /** Undefined: there are few members, and each search looks at all of them. */
  #byConnection: Map<ConnectionId, Here> | undefined;
  readonly #entered = new LazySet<ClientId>();
  readonly #exited = new LazySet<ClientId>();
  #version: number;
  #isAcked = false;
  #unackedSince: Millis | undefined;
  /** The next announcement is a snapshot. */
  #isSnapshotDue = true;
  #sentAt = LONG_AGO;
  #snapshotSentAt = LONG_AGO;
  /** The room was empty a moment ago, as far as this gateway knows. */
  #wasEmpty = true;

  /** `version`: above all versions that this gateway ever used in the room. */
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

  /** There are no members, and the owner knows that. */
  get isDone(): boolean {
    return this.#here.size === 0 && this.#isAcked && this.#exited.size === 0;
  }

  /** The owner has acknowledged nothing since then. */
  get unackedSince(): Millis | undefined {
    return this.#unackedSince;
  }

  has(client: ClientId): boolean {
    return this.#here.has(client);
  }

  of(connection: ConnectionId): PresenceMember | undefined {
    return this.#memberOver(connection);
  }

  /**
   * The owner assigned this number to the client. Returns the former number; undefined: the client had none, or the
   * owner had removed it.
   */
  receiveNumber(client: ClientId, number: ParticipantNumber): ParticipantNumber | undefined {
    const here = this.#here.get(client);
    const before = here?.number;
    if (here !== undefined) here.number = number;
    return before;
  }

  /** Whether the room has removed a member that it showed before. `has`: the clients in the room now. */
  receiveGone(has: (client: ClientId) => boolean): boolean {
    let isMissing = false;
    for (const here of this.#here.values()) {
      if (here.number === undefined || has(here.client)) continue;
      here.number = undefined;
      isMissing = true;
    }
    return isMissing;
  }

  /** The client's connection, if it has only one. */
  soleConnection(client: ClientId): ConnectionId | undefined {
    const [connection, ...others] = this.connectionsOf(client);
    return others.length === 0 ? connection : undefined;
  }

  /** The newest is last. A client has several connections only briefly, after a reconnect. */
  connectionsOf(client: ClientId): readonly ConnectionId[] {
    return this.#here.get(client)?.connections ?? [];
  }

  /** Returns the member that left because its last connection now belongs to another client. */
  enter(connection: ConnectionId, member: PresenceMember, now: Millis): ClientId | undefined {
    const before = this.#memberOver(connection);
    const gone = before === undefined || before.client === member.client ? undefined : this.leave(connection);
    const here = this.#here.get(member.client);
    if (here === undefined) {
      const entered = hereOf(member, connection, now);
      this.#here.set(entered);
      this.#index(connection, entered);
      this.#announce(member.client);
      return gone;
    }
    here.connections = [...here.connections.filter((other) => other !== connection), connection];
    this.#index(connection, here);
    here.inputAt = now;
    this.#update(here, member);
    return gone;
  }

  /** Returns the member that left, if this was its last connection. */
  leave(connection: ConnectionId): ClientId | undefined {
    const here = this.#memberOver(connection);
    if (here === undefined) return undefined;
    const { client } = here;
    this.#byConnection?.delete(connection);
    here.connections = here.connections.filter((other) => other !== connection);
    if (here.connections.length > 0) return undefined;
    this.#here.delete(client);
    this.#entered.delete(client);
    this.#exited.add(client);
    return client;
  }

  /** Any input makes a spectator an editor again. Returns whether that has happened. */
  receiveActivity(connection: ConnectionId, now: Millis): boolean {
    const here = this.#memberOver(connection);
    if (here === undefined) return false;
    here.inputAt = now;
    return this.#receiveSpectator(here, false);
  }

  /** A participant has joined at another gateway, and should see joins immediately. */
  receiveOtherParticipant(): void {
    this.#wasEmpty = false;
  }

  /** The caller calls this every few seconds. */
  findSpectators(now: Millis): void {
    this.#wasEmpty = false;
    for (const here of this.#here.values()) {
      if (now - here.inputAt >= this.#options.spectatorAfterMs) this.#receiveSpectator(here, true);
    }
  }

  receiveAck(version: number): void {
    this.#unackedSince = undefined;
    if (version === this.#version) this.#isAcked = true;
  }

  /** No owner lists any member, so no leave has to be announced. Call only without members. */
  receiveNoOwner(): void {
    this.#exited.clear();
    this.receiveAck(this.#version);
  }

  /** The owner has lost the members that it had received. */
  resendAll(): void {
    this.#isAcked = false;
    this.#isSnapshotDue = true;
  }

  /** A new owner knows nothing: the minimum interval between snapshots to the former owner does not apply. */
  receiveNewOwner(): void {
    this.#snapshotSentAt = LONG_AGO;
    this.resendAll();
  }

  /** Time at which something is to be announced. */
  get dueAt(): Millis {
    if (this.#isSnapshotDue) return (this.#snapshotSentAt + SNAPSHOT_MS_MIN) as Millis;
    if (this.#entered.size > 0 || this.#exited.size > 0) return Math.max(this.#sentAt + CHANGES_MS_MIN, this.#joinBatchEndsAt) as Millis;
    return this.#isAcked ? inStep(this.#sentAt + this.#options.keepaliveMs) : ((this.#sentAt + this.#options.repeatMs) as Millis);
  }

  /** `shown`: fields that are sent in the same message. The owner ignores fields of unknown clients. */
  takeDue(epoch: Epoch, now: Millis, shown: readonly PresenceMemberState[] = []): (PresenceToOwner & { kind: "members" }) | undefined {
    const isShownOfNew = !this.#isSnapshotDue && shown.some(({ client }) => this.#entered.has(client));
    if (now < this.dueAt && !isShownOfNew) return undefined;
    const { gateway } = this.#options;
    const hasChanged = this.#entered.size > 0 || this.#exited.size > 0;
    const isSnapshot = this.#isSnapshotDue || (!hasChanged && !this.#isAcked);
    const entered = isSnapshot ? this.#all() : [...this.#entered].map((client) => copyOf(this.#here.get(client)!));
    const exited = isSnapshot ? [] : [...this.#exited];
    if (hasChanged || this.#version === 0) this.#version += 1;
    if (hasChanged) {
      this.#entered.clear();
      this.#exited.clear();
    }
    if (isSnapshot) this.#snapshotSentAt = now;
    this.#isSnapshotDue = false;
    this.#isAcked = false;
    this.#unackedSince ??= now;
    this.#sentAt = now;
    return { kind: "members", gateway, epoch, version: this.#version, snapshot: isSnapshot, entered, exited };
  }

  /** A leave is announced immediately. */
  get #joinBatchEndsAt(): Millis {
    return this.#wasEmpty && this.#exited.size === 0 ? ((this.#snapshotSentAt + JOIN_BATCH_MS) as Millis) : LONG_AGO;
  }

  #memberOver(connection: ConnectionId): Here | undefined {
    return this.#byConnection === undefined
      ? this.#here.findLast((here) => here.connections.includes(connection))
      : this.#byConnection.get(connection);
  }

  /** Call after `#here` holds the member. */
  #index(connection: ConnectionId, here: Here): void {
    if (this.#byConnection !== undefined) this.#byConnection.set(connection, here);
    else if (this.#here.size > SMALL_MAP_ENTRIES_MAX)
      this.#byConnection = new Map([...this.#here.values()].flatMap((each) => each.connections.map((over) => [over, each])));
  }

  #all(): PresenceMember[] {
    return [...this.#here.values()].map(copyOf);
  }

  #update(here: Here, { user, name, canWrite, spectator }: PresenceMember): void {
    if (here.user === user && here.name === name && here.canWrite === canWrite && here.spectator === spectator) return;
    Object.assign(here, { user, name, canWrite, spectator });
    this.#announce(here.client);
  }

  /** Returns whether the status has changed. */
  #receiveSpectator(here: Here, spectator: boolean): boolean {
    if (here.spectator === spectator) return false;
    here.spectator = spectator;
    this.#announce(here.client);
    return true;
  }

  #announce(client: ClientId): void {
    this.#exited.delete(client);
    this.#entered.add(client);
  }
}

function clientOf({ client }: Here): ClientId {
  return client;
}

function hereOf({ client, user, name, canWrite, spectator }: PresenceMember, connection: ConnectionId, now: Millis): Here {
  return { client, user, name, canWrite, spectator, connections: [connection], inputAt: now, number: undefined };
}

/** A copy for a message, because the member itself changes later. */
function copyOf({ client, user, name, canWrite, spectator }: PresenceMember): PresenceMember {
  return { client, user, name, canWrite, spectator };
}
