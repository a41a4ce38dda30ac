/** How a tab reacts to a kick: it comes back after a time. */

import type { Refusal } from "../../client/room/problems.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";

export const KICKED_MS = 400;

/** From the room, also while the tab waits to join it, or with the whole connection. */
export function isKick(refusal: Refusal): boolean {
  if (refusal.kind === "room-refused") return refusal.reason === "rights-revoked" || refusal.reason === "not-allowed";
  return refusal.kind === "connection-refused" && refusal.code === CLOSE.kicked.code;
}
