/** Redis returns with older data, from a backup or from a replica that lagged. Its boards are restored without a new edit. */

import { expect, test } from "vitest";

import { type RoomKey, roomOf } from "../shared/ids.ts";
import { Prng } from "../shared/collections/prng.ts";
import { eventually } from "../test/system/eventually.ts";
import { tenantBoard } from "./boards/keys.ts";
import { ALL_TIME, parseWindow } from "./boards/windows.ts";
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
  TENANT,
  type Started,
  type,
} from "./testing/leaderboard-rig.ts";
import { FakeEditLog } from "./testing/fake-edit-log.ts";
import { referenceBoards } from "./testing/reference-boards.ts";

const HOUR = "2028-12-31T23";
const rig = LeaderboardRig.forThisFile();

/** Copies these keys of Redis. The returned function restores them in one step. */
async function copyOf({ connection: { redis } }: Started, pattern: string): Promise<() => Promise<void>> {
  const copy = await Promise.all((await redis.keys(pattern)).map(async (key) => [key, (await redis.dumpBuffer(key))!] as const));
  return async () => {
    const step = redis.multi().del(await redis.keys(pattern));
    for (const [key, bytes] of copy) step.restore(key, 0, bytes);
    await step.exec();
  };
}

async function isCheckpointed(log: FakeEditLog, { ports }: Started): Promise<boolean> {
  return (await ports.leases.read(0)).lease?.floor === (await log.end(0));
}

async function expectArchive(log: FakeEditLog, { ports }: Started): Promise<void> {
  for (const room of ROOMS) {
    const window = parseWindow(HOUR)!;
    await eventually(`${HOUR} of ${room} is archived`, async () => (await ports.archive.read(room, window)) !== undefined);
    const whole = referenceBoards(log.doneIn(room), SCORING).get(HOUR)!;
    const everyone = (await ports.archive.read(room, window))!.boards.find(({ role }) => role === "everyone");
    expect([everyone?.members, everyone?.points], room).toEqual([whole.length, whole.reduce((sum, { score }) => sum + score, 0)]);
  }
}

test("[LB12] Redis is restored from an earlier state with its connection broken: rooms without edits and their archive are complete again", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(12)];
  const started = await rig.start("lb12", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  await eventually("it is in checkpoints", () => isCheckpointed(log, started));
  const putBack = await copyOf(started, "lb12:*");
  type(log, prng, clock.wallNow(), 60);
  await eventually("more is counted", () => counted(log, started));
  await eventually("all of it is in checkpoints", () => isCheckpointed(log, started));
  await putBack();
  started.connection.redis.disconnect(true);
  await eventually("all is put back", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
  clock.advance(30 * MINUTE_MS);
  await expectArchive(log, started);
});

test("[LB13] a window is not archived while the room's checkpoint has more than Redis: the room is restored first", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(13)];
  const started = await rig.start("lb13", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  const putBack = await copyOf(started, "lb13:board:*");
  type(log, prng, clock.wallNow(), 60);
  await eventually("more is counted", () => counted(log, started));
  await eventually("all of it is in checkpoints", () => isCheckpointed(log, started));
  await putBack(); // The state of a cluster node without the leaderboard's sentinel.
  clock.advance(30 * MINUTE_MS);
  await expectArchive(log, started);
  expect(await counted(log, started)).toBe(true);
});

test("[LB14] after a broken connection or a change of the leaderboard, no room is restored if Redis lost no data", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(14)];
  const compared: string[] = [];
  const first = await rig.start("lb14", log, clock, {}, (ports) => ({
    ...ports,
    checkpoints: { ...ports.checkpoints, rooms: (partition) => (compared.push("first"), ports.checkpoints.rooms(partition)) },
  }));
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is in checkpoints", async () => (await counted(log, first)) && isCheckpointed(log, first));
  const passes = async (): Promise<number> =>
    (await first.registry.getSingleMetric("coroom_boards_passes_total")!.get()).values.reduce((sum, { value }) => sum + value, 0);
  const before = await passes();
  first.connection.redis.disconnect(true);
  await eventually("it begins anew", async () => (await passes()) > before);
  type(log, prng, clock.wallNow(), 20);
  await eventually("and counts on", async () => (await counted(log, first)) && isCheckpointed(log, first));
  await first.host.stop();
  const second = await rig.start("lb14", log, clock, {}, (ports) => ({
    ...ports,
    checkpoints: { ...ports.checkpoints, rooms: (partition) => (compared.push("second"), ports.checkpoints.rooms(partition)) },
  }));
  type(log, prng, clock.wallNow(), 20);
  await eventually("the other counts on", async () => (await counted(log, second)) && isCheckpointed(log, second));
  expect(compared).toEqual(["first"]); // No sentinel had been written before.
});

test("[LB16] no board of a deleted room returns after Redis is restored from an older backup", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(16)];
  const started = await rig.start("lb16", log, clock);
  const doomed = ROOMS[0] as RoomKey;
  const totalOf = async (room: RoomKey): Promise<number | undefined> =>
    (await started.ports.reads.members(tenantBoard(TENANT, "rooms"), "everyone", ALL_TIME, [roomOf(room)]))[0]?.score;
  const isGone = async (): Promise<boolean> => {
    const left = await started.connection.redis.keys(`lb16:board:{${doomed}}*`);
    return left.join() === `lb16:board:{${doomed}}:applied` && (await totalOf(doomed)) === undefined;
  };
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is in checkpoints", async () => (await counted(log, started)) && isCheckpointed(log, started));
  await eventually("the room is among its tenant's", async () => (await totalOf(doomed)) !== undefined);
  await started.ports.names.write(doomed, "ann", "Ann");
  const putBack = await copyOf(started, "lb16:*");
  log.delete(doomed, clock.wallNow());
  await eventually("it is removed", isGone);
  await eventually("that is done", () => isCheckpointed(log, started));
  await putBack();
  await eventually("it is removed again", isGone);
});
