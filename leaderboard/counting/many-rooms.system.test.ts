/** More rooms are in use than a leaderboard may keep in memory. It removes some rooms from memory for others, and counts all. */

import { expect, test } from "vitest";

import { NO_HOLDER } from "../../shared/cluster/lease.ts";
import { eventually } from "../../test/system/eventually.ts";
import {
  counted,
  expectReference,
  expectTenantReference,
  LeaderboardRig,
  NEW_YEARS_EVE,
  ROOMS,
  SetClock,
  type Started,
  USERS,
} from "../testing/leaderboard-rig.ts";
import { FakeEditLog } from "../testing/fake-edit-log.ts";

const rig = LeaderboardRig.forThisFile();

async function hasCaughtUp({ ports }: Started): Promise<boolean> {
  return (await ports.progress.read(0))?.isRebuilding === false;
}

test("[LB19] a leaderboard that begins below the checkpoints counts twice as many rooms as it may hold", async () => {
  const [log, clock] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE)];
  const typeInAll = (): void => {
    for (const room of ROOMS)
      log.append(
        room,
        USERS.map((user) => ({ user, bytes: 10, time: clock.wallNow() })),
      );
  };
  const first = await rig.start("lb19", log, clock);
  typeInAll();
  await eventually("all is counted", () => counted(log, first));
  for (const room of ROOMS)
    await eventually(`${room} has a checkpoint`, async () => (await first.ports.checkpoints.mark(room)).seq === log.editsOf(room).length);
  await first.host.stop();
  const { lease, revision } = await first.ports.leases.read(0);
  expect(lease?.said).toBeDefined();
  await first.ports.leases.write(0, { holder: NO_HOLDER, floor: 0, said: lease?.said }, revision);

  const second = await rig.start("lb19", log, clock, { boardRoomsMax: String(ROOMS.length / 2) });
  typeInAll();
  await eventually("all is counted", () => counted(log, second));
  await eventually("it is up to date", () => hasCaughtUp(second));
  await expectReference(log, second);
  await expectTenantReference(log, second);
});
