/** After a room is deleted, its boards are removed from every store and do not return. */

import { jetstream } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { expect, test } from "vitest";

import { type RoomKey, roomOf, type Seq } from "../../shared/ids.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { Prng } from "../../shared/collections/prng.ts";
import { eventually } from "../../test/system/eventually.ts";
import type { LeaderboardHost } from "../leaderboard-host.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { kvCheckpoints } from "../io/kv-checkpoints.ts";
import { tenantBoard } from "../boards/keys.ts";
import {
  appliedOf,
  counted,
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
import { ALL_TIME, parseWindow } from "../boards/windows.ts";

const rig = LeaderboardRig.forThisFile();

test("[LB10] no board of a deleted room is left in Redis, checkpoints or the archive, and a late writer brings nothing back", async () => {
  const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(10)];
  const first = await rig.start("lb10", log, clock);
  const [doomed, other] = ROOMS as [RoomKey, RoomKey];
  const keysOfRoom = async (room: RoomKey) => (await first.connection.redis.keys(`lb10:board:{${room}}*`)).sort();
  const pageOf = async (host: LeaderboardHost, room: RoomKey, window = "all") =>
    (await host.reader.page({ owner: room, role: "everyone", window, ranking: "unique" }, { offset: 0, limit: 3 })).kind;
  type(log, prng, clock.wallNow(), 100);
  await eventually("all is counted", () => counted(log, first));
  await eventually("it has a checkpoint", async () => (await first.ports.checkpoints.mark(doomed)).revision > 0);
  const [late, mark] = [(await first.ports.boards.dump(doomed, [parseWindow("all")!]))!, await first.ports.checkpoints.mark(doomed)];
  clock.advance(60 * MINUTE_MS);
  type(log, prng, clock.wallNow(), 20);
  await eventually(
    "an hour is in the archive",
    async () => (await first.ports.archive.read(doomed, parseWindow("2028-12-31T23")!)) !== undefined,
  );
  await first.ports.names.write(doomed, "ann", "Ann");

  log.delete(doomed, clock.wallNow());
  await eventually(
    "only that it is deleted is left",
    async () => JSON.stringify(await keysOfRoom(doomed)) === JSON.stringify([`lb10:board:{${doomed}}:applied`]),
  );
  await eventually("it is in no checkpoint", async () => (await first.ports.checkpoints.mark(doomed)).isDeleted);
  await eventually(
    "it is in no archive",
    async () => (await first.ports.archive.read(doomed, parseWindow("2028-12-31T23")!)) === undefined,
  );
  await eventually(
    "it has left its tenant's rooms",
    async () =>
      (await first.ports.reads.members(tenantBoard(TENANT, "rooms"), "everyone", parseWindow("all")!, [roomOf(doomed)])).length === 0,
  );
  expect([await pageOf(first.host, doomed), await pageOf(first.host, other)]).toEqual(["unknown-room", "page"]);

  expect(await first.ports.boards.restore(doomed, late)).toMatchObject({ kind: "stale" });
  expect((await first.ports.checkpoints.write(doomed, late, mark.revision)).kind).toBe("superseded");
  await first.ports.names.write(doomed, "ann", "Ann");
  log.addActivity(doomed, { kind: "present", users: USERS }, clock.wallNow());
  log.append(other, [{ user: USERS[0]!, bytes: 10, time: clock.wallNow() }]);
  await eventually(
    "what came since is counted",
    async () => appliedOf(await first.ports.boards.load(other)).seq === log.editsOf(other).length,
  );
  await first.connection.redis.flushall();
  await eventually("the others are put back", async () => (await pageOf(first.host, other)) === "page");
  await eventually("Redis knows again that it is deleted", async () => (await first.ports.boards.load(doomed)) === "deleted");
  expect(await keysOfRoom(doomed)).toEqual([`lb10:board:{${doomed}}:applied`]);
});

/** Only writes of entries fail, as if the writer were killed before each of them. */
function killedBeforeNaming(nats: NatsConnection): void {
  const request = nats.request.bind(nats);
  nats.request = (subject, ...rest) => (subject.startsWith("$KV.") ? Promise.reject(new Error("killed")) : request(subject, ...rest));
}

test("[LB15] checkpoint objects that a killed writer left unnamed or incomplete go with their room, and with the next sweep", async () => {
  const [nats, dying] = await Promise.all([
    connectNats({ servers: rig.natsUrl, name: "test" }),
    connectNats({ servers: rig.natsUrl, name: "dying" }),
  ]);
  let names = 0;
  const [bucket, options] = ["lb15_boards", { replicas: 1, partitions: 1, newName: () => `run-${++names}` }];
  const checkpoints = await kvCheckpoints(nats, bucket, options);
  const killed = await kvCheckpoints(dying, bucket, options);
  killedBeforeNaming(dying);
  const objects = async (): Promise<string[]> =>
    (await (await new Objm(jetstream(nats)).open(bucket)).list()).map(({ name }) => name).sort();
  const [deleted, kept] = ["acme.deleted", "acme.deleted-not"] as [RoomKey, RoomKey];
  const dump = {
    applied: { ...NOTHING_APPLIED, seq: 1 as Seq },
    uses: NO_USES,
    names: new Map([["ann", "Ann"]]),
    boards: [{ role: "everyone" as const, window: ALL_TIME, standings: [{ member: "ann", score: 1, reachedAt: 1 }] }],
  };
  for (const room of [deleted, kept]) {
    expect((await checkpoints.write(room, dump, 0)).kind).toBe("written");
    const { revision } = await checkpoints.mark(room);
    await expect(killed.write(room, dump, revision)).rejects.toThrow();
  }
  expect(await objects()).toHaveLength(4);
  await checkpoints.remove(deleted);
  expect(await objects()).toEqual([`${kept}/run-3`, `${kept}/run-4`]);
  await jetstream(nats).publish(`$O.${bucket}.C.half`, "written before its writer was killed");
  expect(await checkpoints.sweep(3_600_000)).toBe(0);
  expect(await checkpoints.sweep(0)).toBe(2);
  expect(await objects()).toEqual([`${kept}/run-3`]);
  expect(await checkpoints.read(kept)).toEqual(dump);
  await Promise.all([nats.close(), dying.close()]);
});
