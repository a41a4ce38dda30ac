import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { OwnerReply, CatchUp } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, headOf } from "../../shared/bus/record.ts";
import {
  type ClientId,
  type Epoch,
  type GatewayId,
  type Position,
  type RoomKey,
  type Seq,
  START,
  type UnixMillis,
  type UserId,
} from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { DecodedRecord } from "../ports.ts";
import { LogCatchUps } from "./log-catch-ups-host.ts";

const room = "acme.board" as RoomKey;
const gateway = "gw" as GatewayId;
const ann = "annannannannann1" as ClientId;
const epoch = 1 as Epoch;

/** One edit of 100 bytes per record; the room's seqs are the stream's sequences. */
const stored: DecodedRecord[] = [1, 2, 3, 4].map((seq) => {
  const edits = { epoch, firstSeq: seq as Seq, edits: [{ client: ann, counter: seq, parentSeq: 0 as Seq, payload: new Uint8Array(100) }] };
  return {
    record: ownersRecordOf(encodeEditsRecord({ id: `s.${seq}`, time: 0 as UnixMillis, users: new Map([[ann, "ann" as UserId]]), edits })),
    streamSeq: seq,
  };
});

const checkpointAt = (seq: number, what: { leftOut?: number; bytes: number }): Checkpoint => ({
  epoch,
  seq: seq as Seq,
  streamSeq: seq,
  time: 0 as UnixMillis,
  clients: [],
  ...(what.leftOut === undefined ? {} : { leftOut: what.leftOut }),
  snapshot: { object: "o", bytes: what.bytes, sha256: "" },
});

/** Requests everything after a position, for a room whose log is read one request at a time. */
function askerOf(
  ports: ConstructorParameters<typeof LogCatchUps>[0],
  { logReadsWaitingMax = 1, logReadBytesMax = 250, answerBytesMax = 1e6, clock = new FakeClock() } = {},
) {
  const options = { logReadsMax: 1, logReadsWaitingMax, logReadBytesMax, answerBytesMax, roomsMax: 10 };
  const catchUps = new LogCatchUps(ports, options, { clock, log: SILENT_LOG, metrics: roomServerMetrics(new Registry()) });
  return (request: number, after: Position = START): void => {
    const asked = { kind: "catch-up-request", gateway, request, after, through: 4 as Seq } as const;
    catchUps.answer(room, { kind: "read-log", request: asked, epoch, head: 4 as Seq, streamSeq: 4 });
  };
}

/** The outcome of a catch-up from `after` to the head that may read 250 bytes: a seq, or a snapshot. */
async function catchUp(after: number, checkpoint: Checkpoint | undefined, heldFrom = epoch): Promise<string> {
  const read: number[] = [];
  const answer = await new Promise<CatchUp>((resolve) => {
    const ports = {
      log: {
        append: () => () => {},
        readLast: async () => undefined,
        endsAt: async () => true,
        read: async function* (_: RoomKey, from: number, through: number) {
          for (const one of stored.filter(({ streamSeq }) => streamSeq > from && streamSeq <= through)) {
            read.push(headOf(one.record));
            yield one;
          }
        },
      },
      checkpoints: { newest: async () => checkpoint },
      gateways: {
        answer: (_: GatewayId, __: RoomKey, given: OwnerReply) => void (given.kind === "catch-up" && resolve(given.answer)),
        broadcast: () => {},
      },
    };
    askerOf(ports)(1, { epoch: heldFrom, seq: after as Seq });
  });
  return answer.kind === "resync"
    ? `${answer.reason}${read.length === 0 ? ", unread" : ""}`
    : `${answer.parts.length} records of ${read.join()}`;
}

test("[LCU1] a range that a newer snapshot covers faster is not read from the log", async () => {
  expect(await catchUp(2, checkpointAt(4, { bytes: 400 }))).toBe("too-old"); // Skipped records count as read.
});

test("[LCU4] a new client in a room with a snapshot is sent to it at once, so that many new clients cause no read of the log", async () => {
  expect(await catchUp(0, checkpointAt(1, { bytes: 100 }))).toBe("too-old, unread");
});

test("[LCU2] without a newer snapshot everything is read, from the checkpoint on", async () => {
  expect(await catchUp(0, undefined)).toBe("4 records of 1,2,3,4");
  expect(await catchUp(1, checkpointAt(1, { bytes: 400 }))).toBe("3 records of 1,2,3,4");
});

test("[LCU7] a client with the checkpoint's last edit, in another epoch than the log's, receives that its position is unknown", async () => {
  expect(await catchUp(1, checkpointAt(1, { bytes: 400 }), 0 as Epoch)).toBe("other-epoch");
});

test("[LCU3] a room with other payloads than Yjs updates has no snapshot: its log is read, however long", async () => {
  expect(await catchUp(0, checkpointAt(4, { leftOut: 4, bytes: 2 }))).toBe("4 records of 1,2,3,4");
  expect(await catchUp(0, checkpointAt(4, { leftOut: 1, bytes: 300 }))).toBe("too-old, unread");
});

test("[LCU5] many newcomers request a room's checkpoint once", async () => {
  const [answers, asked]: [CatchUp[], string[]] = [[], []];
  const ports = {
    log: { append: () => () => {}, readLast: async () => undefined, endsAt: async () => true, read: async function* () {} },
    checkpoints: { newest: async (of: RoomKey) => (asked.push(of), checkpointAt(4, { bytes: 400 })) },
    gateways: {
      answer: (_: GatewayId, __: RoomKey, given: OwnerReply) => void (given.kind === "catch-up" && answers.push(given.answer)),
      broadcast: () => {},
    },
  };
  const ask = askerOf(ports, { logReadsWaitingMax: 10 });
  ask(1);
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  ask(2);
  ask(3);
  expect([answers, asked]).toEqual([Array(3).fill({ kind: "resync", reason: "too-old" }), [room]]);
});

test("[LCU6] a request that is repeated while it waits, or while the log is read for it, causes one read; after its answer it causes another", async () => {
  const answered: number[] = [];
  const reads: (() => void)[] = [];
  const ports = {
    log: {
      append: () => () => {},
      readLast: async () => undefined,
      endsAt: async () => true,
      read: async function* () {
        await new Promise<void>((resolve) => reads.push(resolve));
        yield* stored;
      },
    },
    checkpoints: { newest: async () => undefined },
    gateways: {
      answer: (_: GatewayId, __: RoomKey, given: OwnerReply) => void (given.kind === "catch-up" && answered.push(given.request)),
      broadcast: () => {},
    },
  };
  const ask = askerOf(ports, { logReadsWaitingMax: 2 });
  const readNext = async (count: number): Promise<void> => {
    await vi.waitFor(() => expect(reads).toHaveLength(count));
    reads.at(-1)!();
    await vi.waitFor(() => expect(answered).toHaveLength(count));
  };
  for (const request of [1, 2, 2, 1, 2, 1, 2, 3]) ask(request);
  for (const count of [1, 2, 3]) await readNext(count);
  expect(answered).toEqual([1, 2, 3]);
  ask(2);
  await readNext(4);
  expect(answered).toEqual([1, 2, 3, 2]);
});

type Served = { readonly answer: number | string; readonly read: readonly number[]; readonly tookMs: number };

/**
 * A client at seq 1 that continues at seq 3, and another one there. An answer holds two edits, and a record takes 20 ms
 * to read. `isCutOff`: the log fails for a client that continues before seq 3.
 */
async function askedOn(logReadBytesMax: number, { isCutOff = false } = {}): Promise<[Served, Served, Served]> {
  const clock = new FakeClock();
  let isBroken = false;
  let read: number[] = [];
  const answers: CatchUp[] = [];
  const ports = {
    log: {
      append: () => () => {},
      readLast: async () => undefined,
      endsAt: async () => true,
      read: async function* (_: RoomKey, from: number, through: number) {
        if (isBroken) {
          isBroken = false;
          throw new Error("the log has no record there");
        }
        for (const one of stored.filter(({ streamSeq }) => streamSeq > from && streamSeq <= through)) {
          clock.turn(20);
          read.push(one.streamSeq);
          yield one;
        }
      },
    },
    checkpoints: { newest: async () => checkpointAt(4, { bytes: 400 }) },
    gateways: {
      answer: (_: GatewayId, __: RoomKey, given: OwnerReply) => void (given.kind === "catch-up" && answers.push(given.answer)),
      broadcast: () => {},
    },
  };
  const put = askerOf(ports, { logReadBytesMax, answerBytesMax: 300, clock });
  const ask = async (request: number, after: number): Promise<Served> => {
    read = [];
    const askedAt = clock.now();
    put(request, { epoch, seq: after as Seq });
    await vi.waitFor(
      () => {
        if (answers.length < request) clock.turn(1);
        expect(answers).toHaveLength(request);
      },
      { timeout: 10_000, interval: 1 },
    );
    const answer = answers.at(-1)!;
    return { answer: answer.kind === "resync" ? answer.reason : answer.parts.length, read, tookMs: clock.now() - askedAt };
  };
  const first = await ask(1, 1);
  if (isCutOff) {
    isBroken = true;
    put(9, { epoch, seq: 3 as Seq });
    await vi.waitFor(
      () => {
        clock.turn(1);
        expect(isBroken).toBe(false);
      },
      { timeout: 10_000, interval: 1 },
    );
  }
  return [first, await ask(2, 3), await ask(3, 3)];
}

test("[LCU8] an answer holds what fits a message; a request for the rest continues there, after a pause as long as the read took", async () => {
  const [first, second] = await askedOn(1e6);
  expect([first.answer, first.read, second.answer, second.read]).toEqual([2, [1, 2, 3], 1, [3, 4]]);
  expect(second.tookMs).toBeGreaterThanOrEqual(60 + 40);
});

test("[LCU9] the bytes of earlier answers count, until a newer snapshot is the better answer", async () => {
  const [first, second] = await askedOn(450);
  expect([first.answer, second.answer]).toEqual([2, "too-old"]);
});

test("[LCU10] other requests that continue at the same place are read from it too, unless a read from this place failed", async () => {
  const [, , third] = await askedOn(1e6);
  expect([third.answer, third.read]).toEqual([1, [3, 4]]);
  const [, turnedAway, another] = await askedOn(450);
  expect([turnedAway.read, another.read]).toEqual([
    [3, 4],
    [1, 2, 3, 4],
  ]);
});

test("[LCU11] if a read from a place fails, the next request is read from an earlier place", async () => {
  const [, second] = await askedOn(1e6, { isCutOff: true });
  expect([second.answer, second.read]).toEqual([1, [1, 2, 3, 4]]);
});
