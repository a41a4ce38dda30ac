/** Who a token says its bearer is, and which rooms that opens. */

import { because } from "../limits/because.ts";
import { type Millis, type RoomId, roomKey, type RoomKey, type TenantId, type UserId } from "../../shared/ids.ts";
import type { Rights } from "../../shared/wire/frames.ts";

export type Identity = {
  readonly tenant: TenantId;
  readonly user: UserId;
  readonly name: string;
  /** Room ids; a trailing `*` stands for the rest of a name. */
  readonly rooms: readonly string[];
  /** `award`: to tell of activities that are worth points; for backends, never for people. */
  readonly rights: Rights & { readonly admin: boolean; readonly award: boolean };
  /** The date in the token, by the clock of this process from the moment it was checked. */
  readonly expiresAt: Millis;
  /** What is said of its bearer, whatever the token says: over HTTP. Absent on the socket, where sessions are told when it changes. */
  readonly restrictionIn?: RestrictionIn;
};

/** What somebody may not do in a room, or anywhere. */
export type Restriction = { readonly level: "banned" | "read-only"; readonly reason: string };
/** `room` undefined: anywhere. */
export type RestrictionIn = (room: RoomKey | undefined) => Restriction | undefined;

export type TokenVerdict =
  | { readonly kind: "valid"; readonly identity: Identity }
  | { readonly kind: "expired" }
  | { readonly kind: "refused"; readonly why: string }
  /** The keys to check it with could not be had, or not yet. */
  | { readonly kind: "unchecked" };

export type Admission =
  { readonly kind: "admitted"; readonly room: RoomKey; readonly rights: Rights } | { readonly kind: "refused"; readonly why: string };

/** Shared by all who have them. */
export const READ_ONLY: Rights = { read: true, write: false };
const READ_AND_WRITE: Rights = { read: true, write: true };

/** Without the right to read nobody is in a room: whoever writes must see what is written. */
export function admit(identity: Identity, room: RoomId, restrictionIn = identity.restrictionIn): Admission {
  if (!opens(identity, room)) {
    return { kind: "refused", why: "the token does not open this room: ask for one whose claim `rooms` names it" };
  }
  if (!identity.rights.read)
    return { kind: "refused", why: "the token does not give the right to read: ask for one whose claim `rights` has `read`" };
  const key = roomKey(identity.tenant, room);
  const restriction = restrictionIn?.(key);
  if (restriction?.level === "banned") return { kind: "refused", why: because("banned from the room for a time", restriction) };
  return { kind: "admitted", room: key, rights: identity.rights.write && restriction === undefined ? READ_AND_WRITE : READ_ONLY };
}

export function opens({ rooms }: Identity, room: RoomId): boolean {
  return rooms.some((pattern) => matches(pattern, room));
}

function matches(pattern: string, room: RoomId): boolean {
  return pattern.endsWith("*") ? room.startsWith(pattern.slice(0, -1)) : room === pattern;
}
