/** What came of asking a room's owner to hand it over. */

import type { ServerId } from "./ids.ts";

/** `from` is whoever it was asked to go to where the room was there already. */
export type MoveOutcome =
  | { readonly kind: "moved"; readonly from: ServerId }
  | { readonly kind: "open-nowhere" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "silent"; readonly server: ServerId };
