import { expect, test } from "vitest";

import { ACTIVITY_USERS_MAX } from "../../shared/bus/activity.ts";
import type { GatewayId, Millis, RoomKey, UnixMillis, UserId } from "../../shared/ids.ts";
import { intervalAt, presenceActivities, type RoomWriter } from "./board-sessions.ts";

const OPTIONS = { stretchMs: 60_000 };
const NOW = 1_000_000 as Millis;
const writer = (room: string, user: string, forMs: number): RoomWriter => ({
  room: room as RoomKey,
  user: user as UserId,
  since: (NOW - forMs) as Millis,
});

test("[BSES1] a user who is in a room for half an interval is reported once, even with several connections", () => {
  const writers = [
    writer("acme.a", "ann", 60_000),
    writer("acme.a", "ann", 40_000),
    writer("acme.a", "bob", 29_999),
    writer("acme.b", "ann", 30_000),
  ];
  expect(presenceActivities(writers, NOW, OPTIONS)).toEqual([
    { room: "acme.a", activity: { kind: "present", users: ["ann"] } },
    { room: "acme.b", activity: { kind: "present", users: ["ann"] } },
  ]);
});

test("[BSES2] users above the maximum of one message are reported in several messages", () => {
  const writers = Array.from({ length: ACTIVITY_USERS_MAX + 1 }, (_, index) => writer("acme.a", `user-${index}`, 60_000));
  expect(
    presenceActivities(writers, NOW, OPTIONS).map(({ activity }) => (activity.kind === "present" ? activity.users.length : 0)),
  ).toEqual([ACTIVITY_USERS_MAX, 1]);
});

test("[BSES3] a gateway checks once per interval, in its middle half, and not at the same moment as all others", () => {
  const begins = Array.from({ length: 50 }, (_, index) => {
    const gateway = `${index}-th-gateway` as GatewayId;
    const looks = Array.from({ length: 600 }, (_each, second) => intervalAt((second * 1_000) as UnixMillis, gateway, OPTIONS));
    const changes = looks.flatMap((look, second) => (second > 0 && look !== looks[second - 1] ? [second % 60] : []));
    expect(changes).toHaveLength(10);
    expect(new Set(changes).size).toBe(1);
    return changes[0]!;
  });
  expect(Math.min(...begins)).toBeGreaterThanOrEqual(15);
  expect(Math.max(...begins)).toBeLessThanOrEqual(45);
  expect(new Set(begins).size).toBeGreaterThan(10);
});
