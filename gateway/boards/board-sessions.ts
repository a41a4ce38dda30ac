/**
 * Who was in the rooms for a while, to get points for it: looked at once in each stretch of time, somewhere in its
 * middle, so that gateways whose clocks differ mean the same stretch. Whoever counts gives each of them points once a
 * stretch, whichever gateways tell of it and how often.
 */

import { type Activity, ACTIVITY_USERS_MAX } from "../../shared/bus/activity.ts";
import type { GatewayId, Millis, RoomKey, UnixMillis, UserId } from "../../shared/ids.ts";

/** One who may write in a room. */
export type Writer = { readonly room: RoomKey; readonly user: UserId; readonly since: Millis };
export type Presence = { readonly room: RoomKey; readonly activity: Activity };

/** Those who came later than so much of a stretch ago are looked at the next time. */
const STAY_SHARE = 0.5;

/** Whom a look at `now` finds, each user once in a room, in messages of a bounded size. */
export function presencesAt(writers: Iterable<Writer>, now: Millis, { stretchMs }: { stretchMs: number }): Presence[] {
  const rooms = new Map<RoomKey, Set<UserId>>();
  for (const { room, user, since } of writers) {
    if (now - since < stretchMs * STAY_SHARE) continue;
    const users = rooms.get(room);
    if (users === undefined) rooms.set(room, new Set([user]));
    else users.add(user);
  }
  return [...rooms].flatMap(([room, users]) => inParts([...users]).map((some) => ({ room, activity: { kind: "present", users: some } })));
}

/** Which look a date belongs to; it changes when it is time for one. Gateways do not all look at the same moment. */
export function lookAt(date: UnixMillis, gateway: GatewayId, { stretchMs }: { stretchMs: number }): number {
  return Math.floor(date / stretchMs - 0.25 - spreadOf(gateway) / 2);
}

/** From 0 to 1 by its name (FNV-1a). */
function spreadOf(gateway: GatewayId): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < gateway.length; index++) hash = Math.imul(hash ^ gateway.charCodeAt(index), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}

function inParts(users: readonly UserId[]): UserId[][] {
  const parts: UserId[][] = [];
  for (let at = 0; at < users.length; at += ACTIVITY_USERS_MAX) parts.push(users.slice(at, at + ACTIVITY_USERS_MAX));
  return parts;
}
