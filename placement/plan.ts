/**
 * What placement wants: who owns each room, and who keeps a warm copy of it. A plan is a list of steps from what was
 * planned before; each has a reason that an operator can read. Plans are numbered, and one that is not newer is refused.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";

export type Step = {
  readonly room: RoomKey;
  readonly action: Action;
  readonly reason: string;
};

export type Action =
  /** Its owner is gone: another claims it. */
  | { kind: "promote"; from: ServerId; to: ServerId }
  /** It is handed over. */
  | { kind: "move"; from: ServerId; to: ServerId }
  /** A warm copy is kept by another server from now on. */
  | { kind: "follow"; by: ServerId; instead: ServerId | undefined }
  /** No warm copy can be kept, or need be any more. */
  | { kind: "unfollow"; by: ServerId };

export type Plan = { readonly generation: number; readonly steps: readonly Step[] };

/** `replica`: who was told to keep a warm copy. `reason`: of the last step. */
export type Assignment = { readonly replica: ServerId | undefined; readonly reason: string; readonly generation: number };

/** All plans so far, taken together. */
export type Placements = { readonly generation: number; readonly rooms: ReadonlyMap<RoomKey, Assignment> };

export const NOTHING_PLANNED: Placements = { generation: 0, rooms: new Map() };

/** Undefined: the plan is stale. */
export function extend(previous: Placements, plan: Plan): Placements | undefined {
  if (plan.generation <= previous.generation) return undefined;
  const rooms = new Map(previous.rooms);
  for (const { room, action, reason } of plan.steps) {
    rooms.set(room, { replica: replicaAfter(action, rooms.get(room)?.replica), reason, generation: plan.generation });
  }
  return { generation: plan.generation, rooms };
}

export function replicaAfter(action: Action, before: ServerId | undefined): ServerId | undefined {
  switch (action.kind) {
    case "promote":
    case "move":
      return before === action.to ? undefined : before; // Whoever has the room keeps no copy of it.
    case "follow":
      return action.by;
    case "unfollow":
      return undefined;
  }
}
