/** The log in JetStream, as the leaderboard reads it. */

import { jetstreamManager } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import { followStream } from "../../shared/io/follow-log.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { EditLog } from "../ports.ts";
import type { ReadingPace } from "../counting/reading-pace.ts";

/** `paces`: of each partition. */
export async function jetstreamLog(nats: NatsConnection, subjects: Subjects, paces: readonly ReadingPace[]): Promise<EditLog> {
  const manager = await jetstreamManager(nats);
  return {
    follow: await followStream(nats, subjects.logStream, (partition, signal) => paces[partition]!.rest(signal)),
    end: async (partition) => (await manager.streams.info(subjects.logStream(partition))).state.last_seq,
    readNow: (partition) => paces[partition]!.readNow(),
  };
}
