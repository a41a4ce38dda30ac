/** Activities from a gateway to a leaderboard, over a real nats-server. */

import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { natsActivities } from "../../gateway/io/nats/nats-boards.ts";
import { activityRemoval, SHORT_READ_WAITS, jetstreamActivities, ReadingInterval } from "../../leaderboard/io/jetstream-activities.ts";
import { type RealNats, startRealNats } from "./real-nats.ts";

const ROOM = "acme.notes" as RoomKey;
const ANN = { kind: "present" as const, users: ["ann" as UserId] };
const OPTIONS = { partitions: 1, replicas: 1, bytesMax: 64 * 1024, dedupeMs: 60_000 };

let server: RealNats;
let nats: NatsConnection;

beforeAll(async () => {
  server = await startRealNats();
  nats = await connectNats({ servers: server.url, name: "test" });
});
afterAll(async () => {
  await nats.close();
  await server.stop();
});

const begin = async (environment: string, options: Partial<typeof OPTIONS> = {}) => {
  const subjects = subjectsOf(environment);
  return {
    stream: await jetstreamActivities(nats, subjects, [new ReadingInterval(systemClock, { restMs: () => 5, ...SHORT_READ_WAITS })], {
      ...OPTIONS,
      ...options,
    }),
    activities: natsActivities(nats, subjects, { logPartitions: 1 }),
  };
};

test("[ACT1] a reported activity is stored once under its id, and arrives in order at the leaderboard", async () => {
  const { stream, activities } = await begin("act1");
  expect(await activities.storeActivity(ROOM, ANN, "a")).toBe("stored");
  expect(await activities.storeActivity(ROOM, ANN, "a")).toBe("known");
  expect(await activities.storeActivity("acme.other" as RoomKey, ANN, "a")).toBe("stored"); // An id belongs to its room.
  const first = (await stream.forgotten(0)) + 1;
  const over = new AbortController();
  const found: unknown[] = [];
  for await (const { room, streamSeq, bytes } of stream.follow(0, 0, over.signal)) {
    found.push([room, streamSeq, JSON.parse(new TextDecoder().decode(bytes))]);
    if (found.length === 2) over.abort();
  }
  expect(found).toEqual([
    [ROOM, first, ANN],
    ["acme.other", first + 1, ANN],
  ]);
  expect(await stream.end(0)).toBe(first + 1);
});

test("[ACT2] activities that checkpoints cover are removed, and the stream keeps its numbers", async () => {
  const { stream, activities } = await begin("act2");
  const first = (await stream.forgotten(0)) + 1;
  for (const id of ["a", "b", "c"]) await activities.storeActivity(ROOM, ANN, id);
  await stream.forget(0, first + 1);
  const over = new AbortController();
  for await (const { streamSeq } of stream.follow(0, 0, over.signal)) {
    expect(streamSeq).toBe(first + 2);
    over.abort();
  }
  await stream.forget(0, first + 2);
  expect([await stream.forgotten(0), await stream.end(0)]).toEqual([first + 2, first + 2]);
  expect(await activities.storeActivity(ROOM, ANN, "b")).toBe("known"); // Removed, but it was stored.
  await activities.storeActivity(ROOM, ANN, "d");
  expect(await stream.end(0)).toBe(first + 3);
});

test("[ACT3] a full stream accepts nothing and loses nothing; with free space it continues, also under a new limit", async () => {
  const { stream, activities } = await begin("act3", { bytesMax: 4_096 });
  const first = (await stream.end(0)) + 1;
  let stored = 0;
  while ((await activities.storeActivity(ROOM, ANN, `${stored}`)) === "stored") stored += 1;
  expect(stored).toBeGreaterThan(5);
  expect(await activities.storeActivity(ROOM, ANN, "more")).toBe("full");
  expect(await stream.end(0)).toBe(first + stored - 1);
  await begin("act3");
  expect(await activities.storeActivity(ROOM, ANN, "more")).toBe("stored");
});

test("[ACT4] without a stream nothing is accepted", async () => {
  expect(await natsActivities(nats, subjectsOf("act4"), { logPartitions: 1 }).storeActivity(ROOM, ANN, "a")).toBe("unavailable");
});

test("[ACT5] a lost stream is created again after all numbers that it ever had", async () => {
  const { stream, activities } = await begin("act5");
  await activities.storeActivity(ROOM, ANN, "a");
  const before = await stream.end(0);
  await (await jetstreamManager(nats)).streams.delete(subjectsOf("act5").activityStream(0));
  expect(await stream.forgotten(0)).toBeGreaterThan(before);
  expect(await activities.storeActivity(ROOM, ANN, "b")).toBe("stored");
});

test("[ACT6] a stream continues after the number up to which it must be emptied, even if it ends before that number", async () => {
  const { stream, activities } = await begin("act6");
  await activities.storeActivity(ROOM, ANN, "a");
  const far = (await stream.end(0)) + 5_000;
  await stream.forget(0, far);
  await activities.storeActivity(ROOM, ANN, "b");
  expect(await stream.end(0)).toBe(far + 1);
});

test("[ACT7] after the last activities are removed with their room, the last one is an earlier one, and numbers continue after the end", async () => {
  const { stream, activities } = await begin("act7");
  const [end, { removeAll }] = [await stream.end(0), await activityRemoval(nats, subjectsOf("act7"), 1)];
  expect(await stream.last(0)).toBe(0);
  await activities.storeActivity("acme.other" as RoomKey, ANN, "a");
  for (const id of ["a", "b"]) await activities.storeActivity(ROOM, ANN, id);
  expect([await stream.last(0), await stream.end(0)]).toEqual([end + 3, end + 3]);
  await removeAll(ROOM);
  expect([await stream.last(0), await stream.end(0)]).toEqual([end + 1, end + 3]);
  await removeAll("acme.other" as RoomKey);
  expect([await stream.last(0), await stream.end(0)]).toEqual([0, end + 3]);
});
