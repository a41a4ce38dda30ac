/** The rooms that a probe keeps, and the activity in each. */

import type { ProbeConfig } from "./config.ts";

export const PROBE_ROOM_KINDS = ["small", "large", "edit_heavy", "presence_heavy"] as const;
/** Also the values of the metrics' label. */
export type ProbeRoomKind = (typeof PROBE_ROOM_KINDS)[number];

/** `participants`: the pair that writes and points, and the observers. */
export type ProbeRoomPlan = {
  readonly kind: ProbeRoomKind;
  readonly room: string;
  readonly participants: number;
  readonly editsPerSecond: number;
  readonly presencePerSecond: number;
};

/** The first participants of each room write, point, and watch each other. */
export const PAIR = 2;
/** The rooms that every token must open. */
export const ROOMS = "probe-*";

type ProbePlanConfig = Pick<
  ProbeConfig,
  | "probeRoomsPerKind"
  | "probeLargeParticipants"
  | "probeEditsPerSecond"
  | "probeHeavyEditsPerSecond"
  | "probePresencePerSecond"
  | "probeHeavyPresencePerSecond"
>;

export function planRooms(config: ProbePlanConfig): ProbeRoomPlan[] {
  return PROBE_ROOM_KINDS.flatMap((kind) => Array.from({ length: config.probeRoomsPerKind }, (_, index) => planRoom(kind, index, config)));
}

/** Room names are permanent, because the deletion of a room does not remove its name. */
function planRoom(kind: ProbeRoomKind, index: number, config: ProbePlanConfig): ProbeRoomPlan {
  return {
    kind,
    room: `probe-${kind.replace("_", "-")}-${index + 1}`,
    participants: kind === "large" ? config.probeLargeParticipants : PAIR,
    editsPerSecond: kind === "edit_heavy" ? config.probeHeavyEditsPerSecond : config.probeEditsPerSecond,
    presencePerSecond: kind === "presence_heavy" ? config.probeHeavyPresencePerSecond : config.probePresencePerSecond,
  };
}
