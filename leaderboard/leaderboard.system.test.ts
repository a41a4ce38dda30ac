/**
 * Leaderboards on a real redis-server and nats-server. The boards equal the reference boards of the complete log, even
 * if processes are killed, paused or started, or data is flushed.
 */

import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { Prng } from "../shared/collections/prng.ts";
import { eventually } from "../test/system/eventually.ts";
import { parseWindow, windowAt } from "./boards/windows.ts";
import type { LeaderboardPorts } from "./leaderboard-host.ts";
import {
  counted,
  expectReference,
  expectTenantReference,
  LeaderboardRig,
  MINUTE_MS,
  NEW_YEARS_EVE,
  ROOMS,
  SCORING,
  SetClock,
  type Started,
  type,
} from "./testing/leaderboard-rig.ts";
import { FakeEditLog } from "./testing/fake-edit-log.ts";
import { referenceBoards } from "./testing/reference-boards.ts";
import type { ReadPosition, StoredRecord } from "../shared/bus/record.ts";

const rig = LeaderboardRig.forThisFile();

/** In seconds. Undefined: no value is reported. */
async function behindOf({ registry }: Started): Promise<number | undefined> {
  return (await registry.getSingleMetric("coroom_boards_behind_seconds")!.get()).values[0]?.value;
}

// oxlint-disable-next-line require-yield
async function* neverRead(_partition: number, _from: ReadPosition, signal: AbortSignal): AsyncIterable<StoredRecord> {
  // The lease may have expired before the read began.
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
}

test("[LB1] every room's boards are counted in every window, across the end of each kind of window", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(1)];
  // Two of the eight members are outside the exact part of the board.
  const started = await rig.start("lb1", log, clock, { boardTail: "ordered", boardReadMembersMax: "6" });
  for (let minute = 0; minute < 40; minute++) {
    type(log, prng, clock.wallNow(), 10);
    clock.advance(MINUTE_MS);
  }
  await eventually("all is counted", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
});

test("[LB2] all boards are restored completely after Redis is killed, flushed and emptied during edits", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(2)];
  const started = await rig.start("lb2", log, clock);
  for (let round = 0; round < 6; round++) {
    type(log, prng, clock.wallNow(), 40);
    await eventually("all is counted", () => counted(log, started));
    const seen = (await started.registry.getSingleMetric("coroom_boards_checkpoint_seconds")!.get()).values.length;
    if (round % 2 === 0)
      await eventually(
        "there are checkpoints",
        async () =>
          (await started.registry.getSingleMetric("coroom_boards_checkpoint_seconds")!.get()).values.length >= seen &&
          (await started.ports.checkpoints.rooms(0)).length === ROOMS.length,
      );
    type(log, prng, clock.wallNow(), 20);
    if (round % 3 === 0) await started.connection.redis.flushall();
    else {
      if (round % 3 === 1) await started.connection.redis.flushall();
      rig.redis.kill("SIGKILL");
      await rig.redis.restart();
    }
    type(log, prng, clock.wallNow(), 20);
    clock.advance(7 * MINUTE_MS);
  }
  await eventually("all is counted", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
});

test("[LB3] rooms without further edits get their boards back too", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(3)];
  const started = await rig.start("lb3", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  await eventually("all is in checkpoints", async () => (await started.ports.leases.read(0)).lease?.floor === (await log.end(0)));
  await started.connection.redis.flushall();
  await eventually("all is put back", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
});

test("[LB25] lost boards are a warning only if Redis has lost boards", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(25)];
  const started = await rig.start("lb25", log, clock);
  const { redis } = started.connection;
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  await eventually("all is in checkpoints", async () => (await started.ports.leases.read(0)).lease?.floor === (await log.end(0)));
  const losses = (): number => started.warnings.filter((sentence) => sentence.startsWith("Redis had lost boards")).length;
  const sentinel = (await redis.keys("lb25:*:progress*"))[0]!;
  await redis.del(sentinel); // As if another leaderboard had written a sentinel and ended before its lease named it.
  await eventually("a sentinel is written again", async () => (await redis.exists(sentinel)) === 1);
  expect(losses()).toBe(0);
  await redis.flushall();
  await eventually("the loss is reported", () => losses() === 1);
});

test("[LB27] a Redis that rejects the login is no warning of each pass", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(27)];
  const started = await rig.start("lb27", log, clock);
  const { redis } = started.connection;
  type(log, prng, clock.wallNow(), 30);
  await eventually("all is counted", () => counted(log, started));
  const failed = async (): Promise<number> =>
    (await started.registry.getSingleMetric("coroom_boards_passes_total")!.get()).values.find(({ labels }) => labels["reason"] === "failed")
      ?.value ?? 0;
  const before = await failed();
  await redis.config("SET", "requirepass", "another password");
  redis.disconnect(true);
  await eventually("passes have failed", async () => (await failed()) >= before + 3);
  const open = new Redis(rig.redis.url, { password: "another password" });
  await open.config("SET", "requirepass", "");
  await open.quit();
  await eventually("all is counted", () => counted(log, started));
  expect(started.warnings.filter((sentence) => sentence.startsWith("counting begins again")).length).toBeLessThanOrEqual(1);
});

test("[LB4] leaderboards that share the log, stop, start and lose their leases change no score", async () => {
  const [log, clock, prng] = [new FakeEditLog(2), new SetClock(NEW_YEARS_EVE), new Prng(4)];
  const flags = { logPartitions: "2" };
  let [first, second] = [await rig.start("lb4", log, clock, flags), await rig.start("lb4", log, clock, flags)];
  for (let round = 0; round < 6; round++) {
    type(log, prng, clock.wallNow(), 60);
    if (round % 2 === 0) {
      await first.host.stop();
      first = await rig.start("lb4", log, clock, flags);
    } else {
      // A leaderboard that cannot reach its leases counts no longer than until the next renewal. Another one takes over.
      const lease = await second.ports.leases.read(round % 4 === 1 ? 0 : 1);
      await second.ports.leases.write(round % 4 === 1 ? 0 : 1, { holder: "", floor: lease.lease?.floor ?? 0 }, lease.revision);
    }
    clock.advance(5 * MINUTE_MS);
    if (round % 3 === 2) await eventually("all is counted", () => counted(log, second));
  }
  type(log, prng, clock.wallNow(), 20);
  await eventually("all is counted", () => counted(log, second));
  await expectReference(log, second);
  await expectTenantReference(log, second);
});

test("[LB24] only the named windows are counted and restored, and they stay correct when more windows are named", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(24)];
  const kinds = ["week", "all"] as const;
  const first = await rig.start("lb24", log, clock, { boardWindows: "all,week" });
  for (let round = 0; round < 3; round++) {
    type(log, prng, clock.wallNow(), 40);
    clock.advance(20 * MINUTE_MS);
  }
  await eventually("all is counted", () => counted(log, first));
  await eventually("all is in checkpoints", async () => (await first.ports.leases.read(0)).lease?.floor === (await log.end(0)));
  const boards = (await first.connection.redis.keys("lb24:*")).filter((key) => /:(hot|full|counts|of:[^:]+)$/.test(key));
  expect(new Set(boards.map((key) => parseWindow(/:everyone:([^:]+):/.exec(key)![1]!)!.kind))).toEqual(new Set(kinds));

  await first.connection.redis.flushall();
  await eventually("all is put back", () => counted(log, first));
  await expectReference(log, first, kinds);
  await expectTenantReference(log, first, ROOMS, kinds);

  await first.host.stop();
  const second = await rig.start("lb24", log, clock);
  type(log, prng, clock.wallNow(), 40);
  await eventually("all is counted", () => counted(log, second));
  for (const window of kinds) {
    const question = { owner: ROOMS[0]!, role: "everyone", window, ranking: "unique" } as const;
    const points = referenceBoards(log.doneIn(ROOMS[0]!), SCORING)
      .get(windowAt(window, clock.wallNow()).id)!
      .reduce((sum, { score }) => sum + score, 0);
    expect(await second.host.reader.page(question, { offset: 0, limit: 3 })).toMatchObject({ kind: "page", about: { points } });
  }
});

test("[LB7] boards report that they are behind while Redis is unavailable, and are correct afterwards", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(7)];
  const started = await rig.start("lb7", log, clock, { boardBehindMsMax: "1500" });
  type(log, prng, clock.wallNow(), 30);
  await eventually("all is counted", () => counted(log, started));
  const question = { owner: ROOMS[0]!, role: "everyone", window: "all", ranking: "unique" } as const;
  await eventually("the boards are up to date", async () => {
    const answer = await started.host.reader.page(question, { offset: 0, limit: 3 });
    return answer.kind === "page" && !answer.about.isBehind;
  });
  rig.redis.kill("SIGSTOP");
  type(log, prng, clock.wallNow(), 30);
  clock.advance(10_000);
  await eventually("it is seen how far they are behind", async () => ((await behindOf(started)) ?? 0) > 5);
  const asked = started.host.reader.page(question, { offset: 0, limit: 3 }); // Redis answers it before anything that is sent later.
  rig.redis.kill("SIGCONT");
  const answer = await asked;
  expect(answer.kind === "page" && answer.about.isBehind).toBe(true);
  await eventually("all is counted", () => counted(log, started));
  clock.advance(1_000); // After this time no earlier snapshot is shared any more.
  await expectReference(log, started);
});

test("[LB21] only the leaderboard that counts reports the delay of the boards", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(21)];
  const first = await rig.start("lb21", log, clock);
  type(log, prng, clock.wallNow(), 30);
  await eventually(
    "all is counted",
    async () => (await counted(log, first)) && (await first.ports.progress.read(0))?.isRebuilding === false,
  );
  expect(await behindOf(first)).toBeLessThan(60);
  await first.host.stop();
  expect(await behindOf(first)).toBeUndefined();
  type(log, prng, clock.wallNow(), 30);
  clock.advance(60 * MINUTE_MS);
  const second = await rig.start("lb21", log, clock, {}, (ports) => ({
    ...ports,
    log: { end: (partition) => ports.log.end(partition), readNow: (partition) => ports.log.readNow(partition), follow: neverRead },
  }));
  await eventually("it counts", async () => (await behindOf(second)) !== undefined);
  const seconds = await behindOf(second);
  expect([seconds! >= 3_600, seconds! < 7_200], `${seconds}`).toEqual([true, true]);
});

test("[LB9] the next leaderboard sends the totals of a window that ended before they were sent", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(9)];
  const never = String(3 * 60 * MINUTE_MS);
  const dying = (ports: LeaderboardPorts): LeaderboardPorts => ({
    ...ports,
    tenants: { ...ports.tenants, sendTotals: () => Promise.reject(new Error("it died")) },
  });
  const first = await rig.start("lb9", log, clock, { boardTotalsMs: never, boardCheckpointMsMax: never }, dying);
  type(log, prng, clock.wallNow(), 60);
  await eventually("the last hour of the year is counted", () => counted(log, first));
  clock.advance(30 * MINUTE_MS);
  type(log, prng, clock.wallNow(), 60);
  await eventually("the first of the next is counted", () => counted(log, first));
  await first.host.stop();
  const second = await rig.start("lb9", log, clock);
  await eventually("all is counted", () => counted(log, second));
  await expectTenantReference(log, second);
});
