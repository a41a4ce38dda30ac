/**
 * Closed windows are archived once, even if a leaderboard dies in the meantime, and are read from the archive after
 * Redis removed them.
 */

import { expect, onTestFinished, test } from "vitest";

import { partitionOf } from "../../shared/bus/subjects.ts";
import { Prng } from "../../shared/collections/prng.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import { redisConnection } from "../../shared/io/redis.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { eventually } from "../../test/system/eventually.ts";
import { keysOf, TENANT_RANKINGS, tenantBoard } from "../boards/keys.ts";
import type { LeaderboardPorts } from "../leaderboard-host.ts";
import {
  counted,
  expectReference,
  expectTenantReference,
  LeaderboardRig,
  MINUTE_MS,
  NEW_YEARS_EVE,
  ROOMS,
  SetClock,
  TENANT,
  type,
  USERS,
} from "../testing/leaderboard-rig.ts";
import { FakeEditLog } from "../testing/fake-edit-log.ts";
import { parseWindow } from "../boards/windows.ts";
import { redisClosings } from "../io/redis-ports.ts";

const rig = LeaderboardRig.forThisFile();

test("[LB5] a window that ended is archived once, and is read from the archive when Redis no longer has it", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(5)];
  const started = await rig.start("lb5", log, clock);
  const other = await rig.start("lb5", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  const ended = ["2028-12-31T23", "2028-12-31", "2028-W52", "2028-12", "2028"];
  expect(await started.ports.archive.read(ROOMS[0]!, parseWindow(ended[0]!)!)).toBeUndefined();
  clock.advance(30 * MINUTE_MS);
  for (const id of ended)
    for (const room of ROOMS)
      await eventually(
        `${id} of ${room} is archived`,
        async () => (await started.ports.archive.read(room, parseWindow(id)!)) !== undefined,
      );
  await eventually(
    "nothing is left to archive but what still runs",
    async () => (await started.ports.closings.due(0, clock.wallNow(), 100)).length === 0,
  );
  const hour = started.connection.redis;
  expect(await hour.pttl(keysOf("lb5").board(ROOMS[0]!, "everyone", { id: ended[0]! }).full)).toBeGreaterThan(0);
  expect(await hour.pttl(keysOf("lb5").board(ROOMS[0]!, "everyone", { id: "all" }).full)).toBe(-1);
  // A second writer changes nothing.
  const before = await started.ports.archive.read(ROOMS[0]!, parseWindow("2028")!);
  expect(await other.ports.archive.write(ROOMS[0]!, parseWindow("2028")!, { applied: before!.applied, boards: [] })).toBe("there");
  for (const room of ROOMS) for (const id of ended) await hour.del(Object.values(keysOf("lb5").board(room, "everyone", { id })));
  for (const id of ended)
    await eventually(
      `${id} of the tenant is archived`,
      async () => (await started.ports.archive.read(tenantBoard(TENANT, "rooms"), parseWindow(id)!)) !== undefined,
    );
  for (const id of ended)
    for (const ranking of TENANT_RANKINGS)
      await hour.del(Object.values(keysOf("lb5").board(tenantBoard(TENANT, ranking), "everyone", { id })));
  clock.advance(1_000); // After this time no snapshot is shared any more.
  await expectReference(log, other);
  await expectTenantReference(log, other);
  for (const [ranking, members] of [
    ["rooms", ROOMS.length],
    ["people", USERS.length],
  ] as const) {
    const question = { owner: tenantBoard(TENANT, ranking), role: "everyone", window: "2028", ranking: "unique" } as const;
    const page = await other.host.reader.page(question, { offset: 0, limit: 10 });
    expect(page.kind === "page" && [page.about.isArchived, page.about.members], ranking).toEqual([true, members]);
  }
});

test("[LB8] a leaderboard that dies between archiving a window and releasing it: another one finishes, and the window is written once", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(8)];
  const written: string[] = [];
  const watched = (ports: LeaderboardPorts): LeaderboardPorts => ({
    ...ports,
    archive: {
      ...ports.archive,
      write: async (room, window, archived) => {
        const outcome = await ports.archive.write(room, window, archived);
        if (outcome === "written") written.push(`${room} ${window.id}`);
        return outcome;
      },
    },
  });
  const dying = (ports: LeaderboardPorts): LeaderboardPorts => ({
    ...watched(ports),
    closings: { ...ports.closings, finish: () => Promise.reject(new Error("it died")) },
    closedTenants: { ...ports.closedTenants, finish: () => Promise.reject(new Error("it died")) },
  });
  const first = await rig.start("lb8", log, clock, {}, dying);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, first));
  clock.advance(30 * MINUTE_MS);
  await eventually("it has written some and let none go", () => written.length > 0);
  const second = await rig.start("lb8", log, clock, {}, watched);
  await first.host.stop();
  const ended = ["2028-12-31T23", "2028-12-31", "2028-W52", "2028-12", "2028"];
  const wanted = [...ROOMS, tenantBoard(TENANT, "people"), tenantBoard(TENANT, "rooms")]
    .flatMap((owner) => ended.map((id) => `${owner} ${id}`))
    .sort();
  await eventually("all is written", () => written.length >= wanted.length);
  await eventually(
    "nothing is left",
    async () =>
      (await second.ports.closings.due(0, clock.wallNow(), 100)).length +
        (await second.ports.closedTenants.due(clock.wallNow(), 100)).length ===
      0,
  );
  expect([...written].sort()).toEqual(wanted);
  await expectReference(log, second);
});

test("[LB23] the window of a room that a split of the log moved is archived by the room's new partition", async () => {
  const connection = redisConnection(rig.redis.url, SILENT_LOG);
  onTestFinished(() => connection.stop());
  await eventually("Redis is connected", () => connection.redis.status === "ready");
  const [before, after] = [1, 3].map((partitions) => redisClosings(connection, keysOf("lb23"), partitions));
  const [window, endedBefore] = [parseWindow("2028-12")!, parseWindow("2028")!.end as UnixMillis];
  for (const room of ROOMS) await before!.open(0, room, [window]);
  await connection.redis.zadd(keysOf("lb23").closing(0), window.end, "an entry of a later version");
  expect(new Set(ROOMS.map((room) => partitionOf(room, 3))).size).toBeGreaterThan(1);
  const own = (partition: number) =>
    ROOMS.filter((room) => partitionOf(room, 3) === partition)
      .map((room) => ({ room, window }))
      .sort((a, b) => (a.room < b.room ? -1 : 1));
  for (let read = 0; read < 2; read++)
    for (let partition = 0; partition < 3; partition++)
      expect(await after!.due(partition, endedBefore, 100), `partition ${partition}`).toEqual(own(partition));
  const [moved] = [...own(1), ...own(2)];
  await after!.finish(partitionOf(moved!.room, 3), moved!, endedBefore);
  for (let partition = 0; partition < 3; partition++) expect(await after!.due(partition, endedBefore, 100)).not.toContainEqual(moved);
});
