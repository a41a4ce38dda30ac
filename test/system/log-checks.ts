/**
 * The judge of all system tests. It reads a room's log from JetStream and checks invariants 1 to 3 of ARCHITECTURE.md.
 * It relies on the log only, not on the statements of processes.
 */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { setTimeout as sleep } from "node:timers/promises";

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import { decodeRecord, epochOf, type OwnersRecord, serverOf } from "../../shared/bus/record.ts";
import { partitionOf, subjectsOf } from "../../shared/bus/subjects.ts";
import type { ClientId, RoomKey, UnixMillis } from "../../shared/ids.ts";
import { connectNats } from "../../shared/io/nats.ts";

type OrderedEdit = { readonly seq: number; readonly client: ClientId; readonly counter: number; readonly payload: Uint8Array };

/** `time`: when JetStream stored the record. */
export type LoggedRecord = { readonly record: OwnersRecord; readonly time: UnixMillis };

const PARTITIONS = 1;
const ANSWER_MS_MAX = 60_000;
const AGAIN_MS = 250;

/** All records of the room, oldest first. */
export async function readLog(natsUrl: string, environment: string, room: RoomKey): Promise<OwnersRecord[]> {
  return (await readTimedLog(natsUrl, environment, room)).map(({ record }) => record);
}

/** Retries, because JetStream may not answer in time after a fault although edits are acknowledged again. */
export async function readTimedLog(natsUrl: string, environment: string, room: RoomKey): Promise<LoggedRecord[]> {
  const deadline = performance.now() + ANSWER_MS_MAX;
  for (;;) {
    try {
      return await readOnce(natsUrl, environment, room);
    } catch (error) {
      if (error instanceof UnexpectedRecord || performance.now() > deadline) throw error;
      await sleep(AGAIN_MS);
    }
  }
}

class UnexpectedRecord extends Error {}

async function readOnce(natsUrl: string, environment: string, room: RoomKey): Promise<LoggedRecord[]> {
  const subjects = subjectsOf(environment);
  const partition = partitionOf(room, PARTITIONS);
  const nats = await connectNats({ servers: natsUrl, name: "log-checks" });
  try {
    const subject = subjects.log(partition, room);
    const manager = await jetstreamManager(nats);
    const records: LoggedRecord[] = [];
    // The leader names the last record. The consumer may be at a replica that lags, and shows nothing behind an earlier one.
    const last = await manager.streams.getMessage(subjects.logStream(partition), { last_by_subj: subject });
    if (last === null) return records;
    const consumer = await jetstream(nats).consumers.get(subjects.logStream(partition), { filter_subjects: [subject] });
    for await (const message of await consumer.consume()) {
      const record = decodeRecord(message.data);
      if (record === undefined || record.kind === "deleted")
        throw new UnexpectedRecord(`no owner's record at stream sequence ${message.seq}`);
      records.push({ record, time: message.time.getTime() as UnixMillis });
      if (message.seq >= last.seq) break; // A trim keeps the room's last record.
    }
    return records;
  } finally {
    await nats.close();
  }
}

/**
 * Returns the edits in order. Throws unless the seqs are 1..N without gap or repeat, epochs never decrease, and each
 * epoch has one owner. Each client's edits must be in its order without gap or repeat; an edit over HTTP is the only
 * one of its client.
 */
export function checkLog(records: readonly OwnersRecord[]): OrderedEdit[] {
  const edits: OrderedEdit[] = [];
  const counters = new Map<ClientId, number>();
  const ownerOfEpoch = new Map<number, string>();
  let epoch = 0;
  for (const record of records) {
    const owner = serverOf(record);
    check(epochOf(record) >= epoch, `epoch ${epochOf(record)} comes after epoch ${epoch}`);
    epoch = epochOf(record);
    check((ownerOfEpoch.get(epoch) ?? owner) === owner, `epoch ${epoch} has two writers: ${ownerOfEpoch.get(epoch)} and ${owner}`);
    ownerOfEpoch.set(epoch, owner);
    if (record.kind === "epoch") {
      check(record.head === edits.length, `epoch ${epoch} begins at seq ${record.head}, the log is at ${edits.length}`);
      continue;
    }
    record.edits.edits.forEach(({ client, counter, payload }, index) => {
      const seq = record.edits.firstSeq + index;
      check(seq === edits.length + 1, `seq ${seq} follows seq ${edits.length}`);
      const last = counters.get(client) ?? 0;
      const isOnly = counter >= ONLY_EDIT_COUNTER_MIN && last === 0;
      check(isOnly || counter === last + 1, `client ${client}: edit ${counter} follows edit ${last}`);
      counters.set(client, counter);
      edits.push({ seq, client, counter, payload });
    });
  }
  return edits;
}

function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(`the log breaks its promise: ${otherwise}`);
}
