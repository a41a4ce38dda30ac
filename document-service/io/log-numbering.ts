/**
 * A log that was lost or rolled back numbers its records from a lower number than checkpoints, leases and histories
 * refer to: readers would take new records for old ones. This code advances the numbering past every number that
 * anything refers to. It removes nothing, and running it again changes nothing.
 */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";

export type LogNumbering = { readonly partition: number; readonly last: number; readonly needed: number };

/**
 * No room: no tenant may contain this character, so every reader of the log skips it. It has content, because an empty
 * message marks the end of a read.
 */
const FILLER = { tenant: "=", room: "filler", content: Uint8Array.of(0) };
/**
 * Fillers per answer; the answer to the last one has its number. A stream silently drops messages while 10,000 wait to
 * be stored.
 */
const UNANSWERED_MAX = 1_000;
const FILLED_MS_MAX = 10_000;

/** The last number of each partition of the log, and the highest number that anything in NATS refers to. */
export async function numberingOf(
  nats: NatsConnection,
  subjects: Subjects,
  partitions: number,
  spokenOf: ReadonlyMap<RoomKey, number>,
): Promise<LogNumbering[]> {
  const manager = await jetstreamManager(nats);
  const kvm = new Kvm(jetstream(nats));
  const numberings: LogNumbering[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const { state } = await manager.streams.info(subjects.logStream(partition));
    let needed = 0;
    for (const bucket of [subjects.documentsBucket, subjects.boardsBucket]) {
      const lease = await (await kvm.create(bucket)).get(`partition.${partition}`);
      if (lease?.operation === "PUT") needed = Math.max(needed, lease.json<{ floor: number }>().floor);
    }
    for (const [room, streamSeq] of spokenOf) if (partitionOf(room, partitions) === partition) needed = Math.max(needed, streamSeq);
    numberings.push({ partition, last: state.last_seq, needed });
  }
  return numberings;
}

/**
 * Call it for every partition: an interrupted call may have left fillers. Throws when the log refuses one; the same
 * call then continues.
 */
export async function moveNumberingOn(nats: NatsConnection, subjects: Subjects, { partition, needed }: LogNumbering): Promise<void> {
  const manager = await jetstreamManager(nats);
  const stream = subjects.logStream(partition);
  const filler = subjects.logOfPartition(partition).replace("*.*", `${FILLER.tenant}.${FILLER.room}`);
  await manager.streams.purge(stream, { filter: filler });
  const { config, state } = await manager.streams.info(stream);
  if (state.last_seq >= needed) return;
  if (state.messages === 0) {
    await manager.streams.delete(stream);
    await manager.streams.add({ ...config, first_seq: needed + 1 });
    return;
  }
  // Existing records stay. Fillers use the numbers in between and are removed afterwards.
  const log = jetstream(nats, { timeout: FILLED_MS_MAX });
  for (let last = state.last_seq; last < needed;) {
    for (let ahead = Math.min(needed - last, UNANSWERED_MAX) - 1; ahead > 0; ahead--) nats.publish(filler, FILLER.content);
    last = (await log.publish(filler, FILLER.content)).seq;
  }
  await manager.streams.purge(stream, { filter: filler });
}
