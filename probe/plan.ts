/** The rooms that a probe keeps, and what happens in each. */

import type { ProbeConfig } from "./config.ts";

export const KINDS = ["small", "large", "edit_heavy", "presence_heavy"] as const;
/** As metrics are labelled. */
export type Kind = (typeof KINDS)[number];

/** `participants`: the pair that writes and points, and whoever else looks on. */
export type RoomPlan = {
  readonly kind: Kind;
  readonly room: string;
  readonly participants: number;
  readonly editsPerSecond: number;
  readonly presencePerSecond: number;
};

/** The first of each room's participants: they write and point, and look for what the other does. */
export const PAIR = 2;
/** What every token must open. */
export const ROOMS = "probe-*";

export type PlanConfig = Pick<
  ProbeConfig,
  | "probeRoomsPerKind"
  | "probeLargeParticipants"
  | "probeEditsPerSecond"
  | "probeHeavyEditsPerSecond"
  | "probePresencePerSecond"
  | "probeHeavyPresencePerSecond"
>;

export function planRooms(config: PlanConfig): RoomPlan[] {
  return KINDS.flatMap((kind) => Array.from({ length: config.probeRoomsPerKind }, (_, index) => planRoom(kind, index, config)));
}

/** Named for good: rooms of a new name each day would leave their names behind when they are deleted. */
function planRoom(kind: Kind, index: number, config: PlanConfig): RoomPlan {
  return {
    kind,
    room: `probe-${kind.replace("_", "-")}-${index + 1}`,
    participants: kind === "large" ? config.probeLargeParticipants : PAIR,
    editsPerSecond: kind === "edit_heavy" ? config.probeHeavyEditsPerSecond : config.probeEditsPerSecond,
    presencePerSecond: kind === "presence_heavy" ? config.probeHeavyPresencePerSecond : config.probePresencePerSecond,
  };
}
