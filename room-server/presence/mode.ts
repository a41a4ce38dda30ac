/**
 * Decides the mode in which a room's presence is sent, by its number of participants. Two thresholds and a minimum time
 * keep a room near a threshold from switching back and forth.
 */

import type { PresenceStatus } from "../../shared/bus/presence-messages.ts";
import type { Millis } from "../../shared/ids.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import type { Budget } from "../load/fair-share.ts";

export type ModeOptions = {
  /** Above this number of participants the room is hierarchical. */
  readonly flatParticipantsMax: number;
  /** At this number a hierarchical room becomes flat again. Lower than `flatParticipantsMax`. */
  readonly flatAgainParticipants: number;
  /** Minimum time in a mode. */
  readonly modeMsMin: number;
};

export type ModeSince = { readonly mode: RoomMode; readonly since: Millis };

/** A room begins flat, and may leave that mode at once. */
export const FLAT_FROM_THE_START: ModeSince = { mode: "flat", since: Number.NEGATIVE_INFINITY as Millis };

/** Returns `current` itself when nothing changes. */
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

/** Maximum rates of presence: 30 messages a second for each participant, and 30,000 a second for all together. */
export function presencePerSecondOf(participants: number): number {
  return Math.max(1, Math.min(PER_SECOND_MAX, Math.floor(STATES_PER_SECOND_MAX / Math.max(1, participants))));
}

/** The status that gateways receive. `budget`: lower limits while the server is late. */
export function presenceStatusOf({ mode }: ModeSince, participants: number, { perSecondMax, shed }: Budget): PresenceStatus {
  return { mode, participants, presencePerSecond: Math.min(perSecondMax, presencePerSecondOf(participants)), shed };
}

/** A changed participant count is not announced alone, but with the next other change. */
export function isSameRule(a: PresenceStatus, b: PresenceStatus): boolean {
  return a.mode === b.mode && a.presencePerSecond === b.presencePerSecond && a.shed === b.shed;
}
