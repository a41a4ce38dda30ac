/** The world as this placement process observes it: servers from heartbeats, and rooms, plans and pins from their buckets. */

import {
  ownerReasonIn,
  type PlannedRoom,
  type RoomEntry,
  type RoomPin,
  type ServerHeartbeat,
  type LocateReply,
  type LocateRequest,
} from "../shared/bus/placement-messages.ts";
import { rankServers } from "../shared/cluster/rendezvous.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { Assignment, Placements, ObservedWorld, RoomState, ServerState } from "./plan.ts";

/** `ownerReason`: the reason of the step that gave the room to `owner`. Undefined: neither a plan nor an operator did. */
type Planned = Assignment & { readonly owner: ServerId; readonly ownerReason: string | undefined };

export type PlannedReplica = { readonly room: RoomKey; readonly replica: ServerId | undefined; readonly generation: number };

/** Gateways may write entries too. Above 2^53 the next plan would have no number, in this process and in all later ones. */
const GENERATION_MAX = 2 ** 52;

export class PlacementView {
  readonly #rooms = new Map<RoomKey, RoomState>();
  /** One object is shared by all rooms of a server. Separate objects took a third of a room's memory. */
  readonly #owned = new Map<ServerId, RoomState>();
  readonly #pins = new Map<RoomKey, RoomPin>();
  readonly #planned = new Map<RoomKey, Planned>();
  #generation = 0;

  /** The highest generation of a planned entry so far. */
  get generation(): number {
    return this.#generation;
  }

  receiveEntry(room: RoomKey, entry: RoomEntry | undefined): void {
    if (entry === undefined) this.#rooms.delete(room);
    else this.#rooms.set(room, this.#ownedBy(entry.owner));
    this.#forgetReplicaOfOwner(room);
  }

  receivePin(room: RoomKey, pin: RoomPin | undefined): void {
    if (pin === undefined) this.#pins.delete(room);
    else this.#pins.set(room, pin);
  }

  /** Returns whether the entry was accepted. An entry of an older plan than the known one is not. */
  receivePlanned(room: RoomKey, planned: PlannedRoom | undefined): boolean {
    this.#generation = Math.max(this.#generation, Math.min(planned?.generation ?? 0, GENERATION_MAX));
    const isNewest = planned === undefined || planned.generation >= (this.#planned.get(room)?.generation ?? 0);
    if (planned === undefined) this.#planned.delete(room);
    else if (isNewest) {
      this.#planned.set(room, {
        replica: planned.replica,
        reason: planned.reason,
        generation: planned.generation,
        owner: planned.owner,
        ownerReason: planned.ownerReason,
      });
    }
    this.#forgetReplicaOfOwner(room);
    return isNewest;
  }

  /** The plan bucket has no entry of this or an earlier plan. Another leader's newer one stays known. */
  receiveUnstored(room: RoomKey, generation: number): void {
    if ((this.#planned.get(room)?.generation ?? 0) <= generation) this.#planned.delete(room);
  }

  ownerOf(room: RoomKey): ServerId | undefined {
    return this.#rooms.get(room)?.owner;
  }

  replicaOf(room: RoomKey): ServerId | undefined {
    return this.#planned.get(room)?.replica;
  }

  /** The reason why the owner has the room, if a plan, an operator or its replica caused it. */
  ownerReasonOf(room: RoomKey): string | undefined {
    const [owner, planned] = [this.ownerOf(room), this.#planned.get(room)];
    return owner === undefined || planned === undefined ? undefined : ownerReasonIn(planned, owner);
  }

  /** Rooms with an owner and without a planned replica. */
  get roomsWithoutReplica(): number {
    let count = 0;
    for (const room of this.#rooms.keys()) if (this.replicaOf(room) === undefined) count += 1;
    return count;
  }

  /** Planned rooms that no server owns any more. */
  *released(): Iterable<PlannedReplica> {
    for (const [room, { replica, generation }] of this.#planned) if (!this.#rooms.has(room)) yield { room, replica, generation };
  }

  world(heartbeats: readonly ServerHeartbeat[]): ObservedWorld {
    this.#forgetServersBut(new Set(heartbeats.map(({ server }) => server)));
    const shares = new Map<RoomKey, number>();
    for (const { server, load } of heartbeats) {
      for (const { room, share } of load?.hot ?? []) if (this.ownerOf(room) === server) shares.set(room, share);
    }
    return { servers: heartbeats.map(stateOf), rooms: this.#rooms, pins: this.#pins, shares };
  }

  placements(generation: number): Placements {
    return { generation, rooms: this.#planned };
  }

  #ownedBy(owner: ServerId): RoomState {
    const known = this.#owned.get(owner);
    if (known !== undefined) return known;
    const state: RoomState = { owner };
    this.#owned.set(owner, state);
    return state;
  }

  #forgetServersBut(live: ReadonlySet<ServerId>): void {
    for (const server of this.#owned.keys()) if (!live.has(server)) this.#owned.delete(server);
  }

  /** The replica's server now owns the room. So no replica exists, even if another server claims the room next. */
  #forgetReplicaOfOwner(room: RoomKey): void {
    const [owner, planned] = [this.ownerOf(room), this.#planned.get(room)];
    if (owner === undefined || planned?.replica !== owner) return;
    this.#planned.set(room, { ...planned, replica: undefined, owner, ownerReason: ownerReasonIn(planned, owner) });
  }
}

/** Servers of earlier versions announce only that they are alive. */
function stateOf({ server, draining, labels, load }: ServerHeartbeat): ServerState {
  return { server, host: labels?.host ?? "", zone: labels?.zone ?? "", pool: labels?.pool ?? "", draining, used: load?.used ?? 0 };
}

export type LocateServers = {
  /** Servers that accept new rooms. */
  readonly available: readonly ServerId[];
  readonly isLive: (server: ServerId) => boolean;
};

/**
 * Answers which server should own a room: the live owner by the rooms bucket, otherwise the replica's server, otherwise
 * rendezvous hashing over the available servers. The answer is only a hint: the epoch record of a claim in the log
 * decides. `suspects` of the request did not answer the requester: they are skipped even if their heartbeats arrive.
 */
export function decideOwner(
  request: LocateRequest,
  entry: RoomEntry | undefined,
  replica: ServerId | undefined,
  servers: LocateServers,
): LocateReply {
  const isUntried = (server: ServerId): boolean => !request.suspects.includes(server);
  if (entry !== undefined && servers.isLive(entry.owner) && isUntried(entry.owner)) return { kind: "server", server: entry.owner };
  const available = servers.available.filter(isUntried);
  if (replica !== undefined && available.includes(replica)) return { kind: "server", server: replica };
  const [best] = rankServers(request.room, available);
  return best === undefined
    ? { kind: "none", reason: "no room server is alive that was not tried: start one, or find out why the listed ones do not answer" }
    : { kind: "server", server: best };
}
