/**
 * How a room's presence travels, by how many are in it. Two thresholds and a shortest stay lie between the modes, so
 * that a room whose size swings around one of them does not switch with it.
 */

import type { Standing } from "../../shared/bus/presence-messages.ts";
import type { Millis } from "../../shared/ids.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import type { Budget } from "../load/fair-share.ts";

export type ModeOptions = {
  /** One more, and the room is hierarchical. */
  readonly flatParticipantsMax: number;
  /** So few, and a hierarchical room is flat again: below `flatParticipantsMax`. */
  readonly flatAgainParticipants: number;
  /** How long a room stays in a mode before it leaves it for another. */
  readonly modeMsMin: number;
};

export type ModeSince = { readonly mode: RoomMode; readonly since: Millis };

/** A room is flat to begin with, and free to leave that at once. */
export const FLAT_FROM_THE_START: ModeSince = { mode: "flat", since: Number.NEGATIVE_INFINITY as Millis };

/** `current` itself if there is nothing to change. */
export function decideMode(current: ModeSince, participants: number, now: Millis, options: ModeOptions): ModeSince {
  const mode = modeFor(current.mode, participants, options);
  return mode === current.mode || now - current.since < options.modeMsMin ? current : { mode, since: now };
}

function modeFor(current: RoomMode, participants: number, { flatParticipantsMax, flatAgainParticipants }: ModeOptions): RoomMode {
  if (participants > flatParticipantsMax) return "hierarchical";
  return participants <= flatAgainParticipants ? "flat" : current;
}

const PER_SECOND_MAX = 30;
const STATES_PER_SECOND_MAX = 30_000;

/** How often each of so many may tell of itself: 30 times a second, and all together 30,000 times. */
export function presencePerSecondOf(participants: number): number {
  return Math.max(1, Math.min(PER_SECOND_MAX, Math.floor(STATES_PER_SECOND_MAX / Math.max(1, participants))));
}

/** What gateways are told of it. `budget`: while the server is late, less. */
export function standingOf({ mode }: ModeSince, participants: number, { perSecondMax, shed }: Budget): Standing {
  return { mode, participants, presencePerSecond: Math.min(perSecondMax, presencePerSecondOf(participants)), shed };
}

/** How many there are is told with the next change of anything else. */
export function isSameRule(a: Standing, b: Standing): boolean {
  return a.mode === b.mode && a.presencePerSecond === b.presencePerSecond && a.shed === b.shed;
}
