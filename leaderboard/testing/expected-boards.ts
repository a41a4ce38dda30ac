/** What boards are compared with: everything that was done, typed at random here and worked out with a pencil. */

import { expect } from "vitest";

import { readSettings } from "../../shared/settings/settings.ts";
import { type RoomId, type RoomKey, roomKey, roomOf, type TenantId, type UnixMillis, type UserId } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import { eventually } from "../../test/system/eventually.ts";
import { type CountedPosition, NOTHING_APPLIED } from "../boards/board.ts";
import { leaderboardSettings } from "../config.ts";
import type { LeaderboardPorts } from "../leaderboard-host.ts";
import { POINTS_PER_MINUTE_MAX, type Started } from "./leaderboard-rig.ts";
import type { MadeUpLog } from "./made-up-log.ts";
import { referenceBoards } from "./reference-boards.ts";

export const USERS = ["ann", "bob", "cy", "dee", "eve", "fay", "gus", "hal"] as UserId[];
export const ROOMS = Array.from({ length: 6 }, (_, index) => `acme.room-${index}` as RoomKey);
export const TENANT = "acme" as TenantId;
/** The ends of all windows are near: it is the last hour of a day, week, month and year. */
export const NEW_YEARS_EVE = Date.UTC(2028, 11, 31, 23, 40) as UnixMillis;
export const MINUTE_MS = 60_000;
export const SCORING = { ...readSettings(leaderboardSettings, { env: {}, flags: {} }), boardPointsPerMinuteMax: POINTS_PER_MINUTE_MAX };

/** Every window of every room, as it is read by anyone: from Redis, or from the archive once it is closed. */
export async function expectReference(log: MadeUpLog, { host }: Started): Promise<void> {
  for (const room of ROOMS) {
    for (const [window, standings] of referenceBoards(log.doneIn(room), SCORING)) {
      const expected = standings.map(({ member, score }) => ({ user: member, score }));
      const answer = await host.reader.page({ room, role: "everyone", window, ranking: "unique" }, { offset: 0, limit: 3 });
      expect(answer.kind === "page" ? answer.ranking.map(({ user, score }) => ({ user, score })) : answer, `${room} ${window}`).toEqual(
        expected.slice(0, 3),
      );
      if (answer.kind === "page") {
        expect([answer.about.members, answer.about.points], `${room} ${window}`).toEqual([
          standings.length,
          standings.reduce((sum, { score }) => sum + score, 0),
        ]);
      }
      for (const [index, { member, score }] of standings.entries()) {
        const own = await host.reader.member({ room, role: "everyone", window, ranking: "unique" }, member, 1);
        expect(own.kind === "member" ? own.own : own, `${room} ${window} ${member}`).toMatchObject({
          user: member,
          score,
          rank: index + 1,
        });
      }
    }
  }
}

/** Every window of the tenant's rooms: what all have got in each room, however often it was told. */
export async function expectTenantReference(log: MadeUpLog, { host }: Started): Promise<void> {
  const windows = new Map<string, Map<string, number>>();
  for (const key of ROOMS) {
    for (const [window, standings] of referenceBoards(log.doneIn(key), SCORING)) {
      windows.set(
        window,
        (windows.get(window) ?? new Map()).set(
          roomOf(key),
          standings.reduce((sum, { score }) => sum + score, 0),
        ),
      );
    }
  }
  for (const [window, rooms] of windows) {
    const totals = [...rooms].sort(([a, points], [b, more]) => more - points || (a < b ? 1 : -1));
    const expected = totals.map(([room, points]) => ({ rank: totals.filter(([, more]) => more > points).length + 1, room, points }));
    await eventually(`the rooms of ${window} are ${JSON.stringify(expected)}`, async () => {
      const pages = [
        await host.tenants.page(TENANT, window, { offset: 0, limit: 2 }),
        await host.tenants.page(TENANT, window, { offset: 2, limit: 10 }),
      ];
      return JSON.stringify(pages.flatMap((page) => (page.kind === "rooms" ? page.ranking : []))) === JSON.stringify(expected);
    });
    for (const [room, points] of rooms) {
      const own = await host.tenants.room(roomKey(TENANT, room as RoomId), window);
      expect(own.kind === "room" ? [own.own, own.about.rooms] : own, `${window} ${room}`).toEqual([
        expected.find((ranked) => ranked.room === room && ranked.points === points),
        rooms.size,
      ]);
    }
  }
}

export function type(log: MadeUpLog, prng: Prng, time: UnixMillis, edits: number): void {
  const anyone = (): UserId => USERS[prng.below(USERS.length)]!;
  for (let left = edits; left > 0; left--) {
    const room = ROOMS[prng.below(ROOMS.length)]!;
    const count = 1 + prng.below(3);
    log.append(
      room,
      Array.from({ length: count }, () => ({ user: anyone(), bytes: [10, 200, 5_000][prng.below(3)]!, time })),
    );
    if (left % 4 === 0) log.tell(room, { kind: "deeds", deeds: [{ user: anyone(), kind: "comment", times: count }] }, time);
    if (left % 10 === 0) log.tell(room, { kind: "present", users: [...new Set([anyone(), anyone()])] }, time);
  }
}

export function appliedOf(stored: Awaited<ReturnType<LeaderboardPorts["boards"]["load"]>>): CountedPosition {
  return stored === undefined || stored === "deleted" ? NOTHING_APPLIED : stored.applied;
}

export async function counted(log: MadeUpLog, { ports }: Started): Promise<boolean> {
  try {
    const applied = await Promise.all(
      ROOMS.map(async (room) => {
        const { seq, activity } = appliedOf(await ports.boards.load(room));
        return seq === log.editsOf(room).length && activity === log.lastTold(room);
      }),
    );
    return applied.every(Boolean);
  } catch {
    return false; // Redis is away.
  }
}
