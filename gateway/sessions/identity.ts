/** The identity that a token proves, and the rooms that it opens. */

import { type Millis, type RoomId, roomKey, type RoomKey, type TenantId, type UserId } from "../../shared/ids.ts";
import type { Rights } from "../../shared/wire/frames.ts";
import { withReason } from "../limits/sanctions.ts";

export type Identity = {
  readonly tenant: TenantId;
  readonly user: UserId;
  readonly name: string;
  /** Room ids. A trailing `*` matches any rest of an id. */
  readonly rooms: readonly string[];
  /**
   * `award`: may report activities that are worth points. For backends only. `boards`: may read the boards of the whole
   * tenant, which name its people and rooms.
   */
  readonly rights: Rights & { readonly admin: boolean; readonly award: boolean; readonly boards: boolean };
  /** The token's expiry, converted to this process's clock when the token was checked. */
  readonly expiresAt: Millis;
  /**
   * Current restrictions of the user, for HTTP requests. Absent for WebSockets, whose sessions are informed of changes.
   */
  readonly restrictionIn?: RestrictionIn;
};

/** A restriction of a user in one room, or in all rooms. */
export type Restriction = { readonly level: "banned" | "read-only"; readonly reason: string };
/** `room`: undefined for all rooms. */
type RestrictionIn = (room: RoomKey | undefined) => Restriction | undefined;

export type TokenVerdict =
  | { readonly kind: "valid"; readonly identity: Identity }
  /** `tenant`: from the token, whose signature is valid. */
  | { readonly kind: "expired"; readonly tenant?: TenantId }
  | { readonly kind: "refused"; readonly why: string }
  /** The keys to check the token are not available. */
  | { readonly kind: "unchecked" };

/** Undefined: the token proves no tenant. */
export function tenantShown(verdict: TokenVerdict): TenantId | undefined {
  if (verdict.kind === "expired") return verdict.tenant;
  return verdict.kind === "valid" ? verdict.identity.tenant : undefined;
}

export type RoomAdmission =
  | { readonly kind: "admitted"; readonly room: RoomKey; readonly rights: Rights }
  /** `retryAfterMs`: 0 if another attempt with the same token would be refused too. */
  | { readonly kind: "refused"; readonly why: string; readonly retryAfterMs: number };

export const READ_ONLY: Rights = { read: true, write: false };
/** Clients of a banned user ask to join again after this time, until the ban from the room ends or is lifted. */
const BANNED_RETRY_MS = 10_000;
const READ_AND_WRITE: Rights = { read: true, write: true };

/** A user without the right to read may not join, because a writer has to see the edits of others. */
export function admit(identity: Identity, room: RoomId, restrictionIn = identity.restrictionIn): RoomAdmission {
  if (!opens(identity, room)) {
    return refused("the token does not open this room: ask for one whose claim `rooms` names it");
  }
  if (!identity.rights.read) return refused("the token does not give the right to read: ask for one whose claim `rights` has `read`");
  const key = roomKey(identity.tenant, room);
  const restriction = restrictionIn?.(key);
  if (restriction?.level === "banned") return refused(withReason("banned from the room for a time", restriction), BANNED_RETRY_MS);
  return { kind: "admitted", room: key, rights: identity.rights.write && restriction === undefined ? READ_AND_WRITE : READ_ONLY };
}

function refused(why: string, retryAfterMs = 0): RoomAdmission {
  return { kind: "refused", why, retryAfterMs };
}

export function opens({ rooms }: Identity, room: RoomId): boolean {
  return rooms.some((pattern) => matches(pattern, room));
}

function matches(pattern: string, room: RoomId): boolean {
  return pattern.endsWith("*") ? room.startsWith(pattern.slice(0, -1)) : room === pattern;
}
