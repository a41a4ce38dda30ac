/** How a room stands, as an application is told: by what it knows itself, and by its line where that is not connected. */

import type { Millis } from "../../shared/ids.ts";
import type { LineStatus, Outage } from "../connection/connection-messages.ts";
import type { PutOff, RoomStatus } from "./membership.ts";

/** `outage`: while it waits, why, and when it is tried again. */
export type RoomStanding = { readonly status: LineStatus; readonly outage: Outage | undefined };

type Room = { readonly status: RoomStatus; readonly putOff: PutOff | undefined };
type Line = { readonly status: LineStatus; readonly outage: Outage | undefined };

/** What the room is no longer, or not yet, asked for with does not go by the line. */
const SETTLED: ReadonlySet<LineStatus> = new Set(["disconnected", "stopped", "waiting"]);

export function standingOf(room: Room, line: Line, now: Millis): RoomStanding {
  const status = SETTLED.has(room.status) || line.status === "connected" ? room.status : line.status;
  if (status !== "waiting") return { status, outage: undefined };
  if (room.putOff === undefined) return { status, outage: line.outage };
  const { reason, message: why, until } = room.putOff;
  return { status, outage: { why, retryInMs: Math.max(0, until - now), reason } };
}
