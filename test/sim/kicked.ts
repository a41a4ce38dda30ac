/** How a tab reacts to refusals and errors. After a kick, or with a token that does not open the room, it comes back later. */

import type { Problem, Refusal } from "../../client/room/problems.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { SimTokens } from "./tokens.ts";

export const COME_BACK_MS = 400;

type Restricting = { readonly kickedUsers: ReadonlySet<string> | undefined; readonly tokens: SimTokens | undefined };

/** Whether a tab may report this error during a fault. The client retries after it, and must reach the final state. */
export function isPassing(problem: Problem["kind"], user: string, { tokens }: Restricting): boolean {
  if (problem === "token-failed") return tokens !== undefined;
  if (problem === "read-only") return tokens?.wasChanged(user) === true;
  return problem === "snapshot-unavailable" || problem === "room-unavailable";
}

/** From the room, also while the tab waits to join it, or with the whole connection. */
export function isForATime(refusal: Refusal, user: string, { kickedUsers, tokens }: Restricting): boolean {
  const isKicked = kickedUsers?.has(user) === true;
  if (refusal.kind === "connection-refused") return isKicked && refusal.code === CLOSE.kicked.code;
  if (refusal.kind !== "room-refused" || (!isKicked && tokens?.wasChanged(user) !== true)) return false;
  return refusal.reason === "rights-revoked" || refusal.reason === "not-allowed";
}
