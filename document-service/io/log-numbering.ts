/**
 * Repairs the numbering of a log that was lost or rolled back. Such a log gives new records numbers that checkpoints,
 * leases and histories already refer to, so readers would take new records for old ones. This code advances the
 * numbering past every number that anything refers to. It removes nothing, and a repeated run changes nothing.
 */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { fillerSubject, fillNumbers } from "../../shared/io/log-numbers.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";

type LogNumbering = { readonly partition: number; readonly last: number; readonly needed: number };

/**
 * The last number of each partition of the log, and the highest number that anything in NATS refers to. `referredTo`: the
 * highest number that each room's entries refer to.
 */
export async function numberingOf(
  nats: NatsConnection,
  subjects: Subjects,
  partitions: number,
  referredTo: ReadonlyMap<RoomKey, number>,
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
    for (const [room, streamSeq] of referredTo) if (partitionOf(room, partitions) === partition) needed = Math.max(needed, streamSeq);
    numberings.push({ partition, last: state.last_seq, needed });
  }
  return numberings;
}

/**
 * Call it for every partition: an interrupted call may have left fillers. Throws when the log refuses one; the same
 * call then continues.
 */
export async function advanceNumbering(nats: NatsConnection, subjects: Subjects, { partition, needed }: LogNumbering): Promise<void> {
  const manager = await jetstreamManager(nats);
  const stream = subjects.logStream(partition);
  const filler = fillerSubject(subjects, partition);
  await manager.streams.purge(stream, { filter: filler });
  const { config, state } = await manager.streams.info(stream);
  if (state.last_seq >= needed) return;
  if (state.messages === 0) {
    await manager.streams.delete(stream);
    await manager.streams.add({ ...config, first_seq: needed + 1 });
    return;
  }
  await fillNumbers(nats, subjects, partition, { last: state.last_seq, needed });
  await manager.streams.purge(stream, { filter: filler });
}
