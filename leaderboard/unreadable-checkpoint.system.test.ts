/** Only a room whose checkpoint does not decode is set aside. The other rooms of its partition are counted. */

import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { expect, test } from "vitest";

import { partitionOf, subjectsOf } from "../shared/bus/subjects.ts";
import type { RoomKey } from "../shared/ids.ts";
import { connectNats } from "../shared/io/nats.ts";
import { Prng } from "../shared/collections/prng.ts";
import { eventually } from "../test/system/eventually.ts";
import { parseWindow } from "./boards/windows.ts";
import {
  appliedOf,
  counted,
  expectReference,
  LeaderboardRig,
  MINUTE_MS,
  NEW_YEARS_EVE,
  ROOMS,
  SetClock,
  type Started,
  type,
} from "./testing/leaderboard-rig.ts";
import { FakeEditLog } from "./testing/fake-edit-log.ts";

const rig = LeaderboardRig.forThisFile();

/** Shortens the retry interval from ten seconds to half a second. */
function hurried(clock: SetClock): SetClock {
  const after = clock.after.bind(clock);
  return Object.assign(clock, { after: (delayMs: number, run: () => void) => after(Math.min(delayMs, 500), run) });
}

async function asideOf({ registry }: Started): Promise<number> {
  const [aside] = (await registry.getMetricsAsJSON()).find(({ name }) => name === "coroom_boards_rooms_aside")?.values ?? [];
  return aside?.value ?? 0;
}

test.each([
  ["entry", () => new TextEncoder().encode("{}")],
  [
    "object",
    (entry: Uint8Array) =>
      new TextEncoder().encode(
        new TextDecoder()
          .decode(entry)
          .replace(/"object":"[^"]*"/, '"object":"gone"')
          .replace(/"seq":\d+/, '"seq":9000000'),
      ),
  ],
])(
  "[LB17] while a room's %s does not decode the other rooms are counted and archived; once it decodes, the room and all its waiting entries are too",
  async (what, damage) => {
    const environment = `lb17${what.length}`;
    const [log, clock, prng] = [new FakeEditLog(1), hurried(new SetClock(NEW_YEARS_EVE)), new Prng(17)];
    const first = await rig.start(environment, log, clock);
    const [bad, others] = [ROOMS[0]!, ROOMS.slice(1)];
    type(log, prng, clock.wallNow(), 60);
    await eventually("all is counted", () => counted(log, first));
    for (const room of ROOMS)
      await eventually("it has a checkpoint", async () => (await first.ports.checkpoints.mark(room)).seq === log.editsOf(room).length);
    await first.host.stop();
    const before = log.editsOf(bad).length;

    const nats = await connectNats({ servers: rig.natsUrl, name: "test" });
    const [kv, key] = [
      await new Kvm(jetstream(nats)).open(subjectsOf(environment).boardCheckpointsBucket),
      `${partitionOf(bad, 1)}.${bad}`,
    ];
    const good = (await kv.get(key))!.value;
    await kv.put(key, damage(good));
    const second = await rig.start(environment, log, clock);
    type(log, prng, clock.wallNow(), 60);
    const appliedTo = async (room: RoomKey): Promise<number> => appliedOf(await second.ports.boards.load(room)).seq;
    for (const room of others) await eventually(`${room} is counted`, async () => (await appliedTo(room)) === log.editsOf(room).length);
    await eventually("the room stands aside", async () => (await asideOf(second)) === 1);
    expect(await appliedTo(bad)).toBe(before);
    clock.advance(30 * MINUTE_MS);
    for (const room of others)
      await eventually(
        `the hour of ${room} is in the archive`,
        async () => (await second.ports.archive.read(room, parseWindow("2028-12-31T23")!)) !== undefined,
      );

    await kv.put(key, good);
    await eventually("all is counted", () => counted(log, second));
    await eventually("it stands aside no more", async () => (await asideOf(second)) === 0);
    await expectReference(log, second);
    await nats.close();
  },
);

test("[LB20] a room that is deleted while its checkpoint does not decode is removed like any other, and delays nothing", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), hurried(new SetClock(NEW_YEARS_EVE)), new Prng(20)];
  const first = await rig.start("lb20", log, clock);
  const bad = ROOMS[0]!;
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, first));
  await eventually("it has a checkpoint", async () => (await first.ports.checkpoints.mark(bad)).revision > 0);
  await first.host.stop();

  const nats = await connectNats({ servers: rig.natsUrl, name: "test" });
  const kv = await new Kvm(jetstream(nats)).open(subjectsOf("lb20").boardCheckpointsBucket);
  await kv.put(`${partitionOf(bad, 1)}.${bad}`, "{}");
  const second = await rig.start("lb20", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("it stands aside", async () => (await asideOf(second)) === 1);
  log.delete(bad, clock.wallNow());
  await eventually("its checkpoint records that it is deleted", () =>
    second.ports.checkpoints.mark(bad).then(
      ({ isDeleted }) => isDeleted,
      () => false,
    ),
  );
  await eventually(
    "only that is left of its boards",
    async () => (await second.connection.redis.keys(`lb20:board:{${bad}}*`)).join() === `lb20:board:{${bad}}:applied`,
  );
  await eventually("all is in checkpoints", async () => (await second.ports.leases.read(0)).lease?.floor === (await log.end(0)));
  await eventually("it stands aside no more", async () => (await asideOf(second)) === 0);
  await nats.close();
});
