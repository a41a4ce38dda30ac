/**
 * Users who spend time in a room earn points. Each gateway checks its rooms once per interval, near the middle of it.
 * Gateways whose clocks differ a little therefore report the same interval. A leaderboard gives each user points once
 * per interval, even if several gateways report the user.
 */

import { type Activity, ACTIVITY_USERS_MAX } from "../../shared/bus/activity.ts";
import { fnv1a } from "../../shared/collections/hash.ts";
import { splitBySize } from "../../shared/collections/split-by-size.ts";
import type { GatewayId, Millis, RoomKey, UnixMillis, UserId } from "../../shared/ids.ts";

/** A user who may write in a room. */
export type RoomWriter = { readonly room: RoomKey; readonly user: UserId; readonly since: Millis };
export type PresenceActivity = { readonly room: RoomKey; readonly activity: Activity };

/** A user who joined less than this share of an interval ago is counted in the next one. */
const STAY_SHARE = 0.5;

/** The users to report at `now`, each once per room, in messages of bounded size. */
export function presenceActivities(writers: Iterable<RoomWriter>, now: Millis, { stretchMs }: { stretchMs: number }): PresenceActivity[] {
  const rooms = new Map<RoomKey, Set<UserId>>();
  for (const { room, user, since } of writers) {
    if (now - since < stretchMs * STAY_SHARE) continue;
    const users = rooms.get(room);
    if (users === undefined) rooms.set(room, new Set([user]));
    else users.add(user);
  }
  return [...rooms].flatMap(([room, users]) =>
    splitBySize([...users], () => 1, ACTIVITY_USERS_MAX).map((some) => ({ room, activity: { kind: "present", users: some } })),
  );
}

/**
 * The number of the check that a date belongs to. When it changes, a check is due. Gateways check at different moments.
 */
export function intervalAt(date: UnixMillis, gateway: GatewayId, { stretchMs }: { stretchMs: number }): number {
  return Math.floor(date / stretchMs - 0.25 - fnv1a(gateway) / 2 ** 33);
}
