/**
 * Advances the numbering of a partition of the log. Existing records stay, and messages that belong to no room use the
 * skipped numbers. So a number that durable data refers to is never given to another record.
 */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";

import type { Subjects } from "../bus/subjects.ts";
import type { NatsConnection } from "./nats.ts";

/**
 * The subject of a filler, which is not a room: no tenant may contain this character, so every reader of the log skips
 * it. It has content, because an empty message marks the end of a read.
 */
const FILLER = { tenant: "=", room: "filler", content: Uint8Array.of(0) };
/**
 * Number of fillers per answer. The answer to the last one contains its number. A stream silently drops messages while
 * 10,000 wait to be stored.
 */
const UNANSWERED_MAX = 1_000;
const FILLED_MS_MAX = 10_000;
/** Takes about a second. More numbers are missing after a restore from a backup, and `coroom restore` fills them. */
const ADVANCED_AT_ONCE_MAX = 100_000;

/** The subject of all fillers of a partition. */
export function fillerSubject(subjects: Subjects, partition: number): string {
  return subjects.logOfPartition(partition).replace("*.*", `${FILLER.tenant}.${FILLER.room}`);
}

/** The partition has numbers up to `last` before, and up to `needed` afterwards. Fillers stay until they are purged. */
export async function fillNumbers(
  nats: NatsConnection,
  subjects: Subjects,
  partition: number,
  { last, needed }: { readonly last: number; readonly needed: number },
): Promise<void> {
  const filler = fillerSubject(subjects, partition);
  const log = jetstream(nats, { timeout: FILLED_MS_MAX });
  for (let reached = last; reached < needed;) {
    for (let ahead = Math.min(needed - reached, UNANSWERED_MAX) - 1; ahead > 0; ahead--) nats.publish(filler, FILLER.content);
    reached = (await log.publish(filler, FILLER.content)).seq;
  }
}

/** Resolves with 0 once the next record's number is above `past`, or with the number of missing numbers if these are too many. */
export async function advanceNumbers(nats: NatsConnection, subjects: Subjects, partition: number, past: number): Promise<number> {
  const manager = await jetstreamManager(nats);
  const stream = subjects.logStream(partition);
  const { state } = await manager.streams.info(stream);
  const missing = past - state.last_seq;
  if (missing > ADVANCED_AT_ONCE_MAX) return missing;
  if (missing <= 0) return 0;
  await fillNumbers(nats, subjects, partition, { last: state.last_seq, needed: past });
  await manager.streams.purge(stream, { filter: fillerSubject(subjects, partition) });
  return 0;
}
