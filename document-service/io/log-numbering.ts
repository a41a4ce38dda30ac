/**
 * A log that was lost or rolled back begins to number its records anew, below what checkpoints, leases and histories say
 * of it: to whoever goes by these, what is new would look like what was read long ago. So its numbering is moved on
 * behind everything that was ever said of it. Nothing is removed, and a second time does nothing more.
 */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";

export type Numbering = { readonly partition: number; readonly last: number; readonly needed: number };

/**
 * Not a room: its tenant has a character that none may have, so whoever reads the log passes over it. It has content: an
 * empty message is how a read ends.
 */
const FILLER = { tenant: "=", room: "filler", content: Uint8Array.of(0) };
/**
 * Fillers on their way, of which the last is answered, with the number that it got. A stream drops unsaid what comes
 * while 10,000 wait to be stored.
 */
const UNANSWERED_MAX = 1_000;
const FILLED_MS_MAX = 10_000;

/** The last number that each part of the log gave out, and the highest that anything in NATS speaks of. */
export async function numberingOf(
  nats: NatsConnection,
  subjects: Subjects,
  partitions: number,
  spokenOf: ReadonlyMap<RoomKey, number>,
): Promise<Numbering[]> {
  const manager = await jetstreamManager(nats);
  const kvm = new Kvm(jetstream(nats));
  const numberings: Numbering[] = [];
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
 * To be called for every part: an earlier call that was interrupted may have left fillers in it. Throws when the log
 * does not take one; the same again then goes on.
 */
export async function moveNumberingOn(nats: NatsConnection, subjects: Subjects, { partition, needed }: Numbering): Promise<void> {
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
  // Records are there, and stay: the numbers between are used up by fillers, which go again.
  const log = jetstream(nats, { timeout: FILLED_MS_MAX });
  for (let last = state.last_seq; last < needed;) {
    for (let ahead = Math.min(needed - last, UNANSWERED_MAX) - 1; ahead > 0; ahead--) nats.publish(filler, FILLER.content);
    last = (await log.publish(filler, FILLER.content)).seq;
  }
  await manager.streams.purge(stream, { filter: filler });
}
