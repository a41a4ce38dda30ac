/** One room's records out of a log that it shares with others, on a real nats-server. */

import { jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { subjectsOf } from "../bus/subjects.ts";
import { roomKey, type RoomId, type TenantId } from "../ids.ts";
import { readLog } from "./log-reader.ts";
import { ensureLogStreams } from "./log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "./nats.ts";

const RECORDS = 700;
const subjects = subjectsOf("follow");
const placeOf = (room: string) => ({
  stream: subjects.logStream(0),
  subject: subjects.log(0, roomKey("acme" as TenantId, room as RoomId)),
});

let server: RealNats;
let nats: NatsConnection;
beforeAll(async () => {
  server = await startRealNats();
  nats = await connectNats({ servers: server.url, name: "test" });
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 1 });
  for (let record = 1; record <= RECORDS; record++)
    for (const room of ["a", "b"]) await jetstream(nats).publish(placeOf(room).subject, String(record));
});
afterAll(async () => {
  await closeNats(nats);
  await server.stop();
});

async function read(after: number, through: number): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { streamSeq } of readLog(nats, placeOf("a"), after, through)) seqs.push(streamSeq);
  return seqs;
}

/** Of the room `a`, which has every other one. */
const between = (after: number, through: number): number[] =>
  Array.from({ length: RECORDS }, (_, index) => 2 * index + 1).filter((seq) => seq > after && seq <= through);

test.each([
  [0, Number.MAX_SAFE_INTEGER],
  [0, 1],
  [0, 127],
  [0, 128],
  [0, 129],
  [1, 385],
  [500, 1_399],
  [2 * RECORDS, Number.MAX_SAFE_INTEGER],
])(
  "[FLW1] a room's records after %i and up to %i arrive completely and in order, without records of other rooms",
  async (after, through) => {
    expect(await read(after, through)).toEqual(between(after, through));
  },
);

test("[FLW3] without a subject the records of all rooms arrive in order", async () => {
  const rooms: (string | undefined)[] = [];
  for await (const { streamSeq, room } of readLog(nats, { stream: subjects.logStream(0) }, 100, 1_390)) rooms[streamSeq] = room;
  expect(Object.keys(rooms).map(Number)).toEqual(Array.from({ length: 1_290 }, (_, index) => 101 + index));
  expect([rooms[101], rooms[102], rooms[1_390]]).toEqual(["acme.a", "acme.b", "acme.b"]);
});

test("[FLW2] a reader of one room receives only its records: the server skips those in between", async () => {
  const before = nats.stats().inMsgs;
  await read(0, 100);
  expect(nats.stats().inMsgs - before).toBeLessThan(100);
});
