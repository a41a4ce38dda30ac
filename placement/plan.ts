/**
 * Plans: which server owns each room, and which keeps its replica. A plan is a list of steps from the previous state,
 * each with a reason for operators. Plans are numbered, and room servers refuse an older one. This file also defines
 * the world, which is the input of a decision.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";

export type PlanStep = {
  readonly room: RoomKey;
  readonly action: PlanAction;
  readonly reason: string;
};

export type PlanAction =
  /** The owner is lost, so another server claims the room. */
  | { kind: "promote"; from: ServerId; to: ServerId }
  /** The room is handed over. */
  | { kind: "move"; from: ServerId; to: ServerId }
  /** Another server keeps the replica from now on. */
  | { kind: "follow"; by: ServerId; instead: ServerId | undefined }
  /** No replica is possible, or the replica is no longer needed. */
  | { kind: "unfollow"; by: ServerId };

export type PlacementPlan = { readonly generation: number; readonly steps: readonly PlanStep[] };

/** `replica`: the server that was commanded to keep the replica. `reason`: the reason of the last step. */
export type Assignment = { readonly replica: ServerId | undefined; readonly reason: string; readonly generation: number };

/** The result of all plans so far. */
export type Placements = { readonly generation: number; readonly rooms: ReadonlyMap<RoomKey, Assignment> };

export const NOTHING_PLANNED: Placements = { generation: 0, rooms: new Map() };

export function replicaAfter(action: PlanAction, before: ServerId | undefined): ServerId | undefined {
  switch (action.kind) {
    case "promote":
    case "move":
      return before === action.to ? undefined : before; // The owner keeps no replica of its room.
    case "follow":
      return action.by;
    case "unfollow":
      return undefined;
  }
}

/** A live room server. `pool`: empty for the general pool. `used`: the used share of its scarcest resource. */
export type ServerState = {
  readonly server: ServerId;
  readonly host: string;
  readonly zone: string;
  readonly pool: string;
  readonly draining: boolean;
  readonly used: number;
};

/** The owner in the rooms bucket. */
export type RoomState = { readonly owner: ServerId };

/** A pin: an operator assigns a room to the servers of a pool, or to a host. */
export type Pin = { readonly pool?: string | undefined; readonly host?: string | undefined };

/** The world as observed: live servers, owners of rooms, and operators' pins. */
export type ObservedWorld = {
  readonly servers: readonly ServerState[];
  readonly rooms: ReadonlyMap<RoomKey, RoomState>;
  readonly pins: ReadonlyMap<RoomKey, Pin>;
  /** Rooms that take a large share of their server's budget. */
  readonly shares: ReadonlyMap<RoomKey, number>;
};

/** `cooled`: rooms in the pool `dedicated` whose load has been low enough for other servers for some time. */
export type PlacementWorld = ObservedWorld & { readonly cooled: ReadonlySet<RoomKey> };

/** The pool whose servers receive rooms that are too hot for other servers. */
export const DEDICATED = "dedicated";
