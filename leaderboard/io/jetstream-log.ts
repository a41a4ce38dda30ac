/** The log in JetStream, as the leaderboard reads it. */

import { jetstreamManager } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import { followLog } from "../../shared/io/follow-log.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { EditLog } from "../ports.ts";

export async function jetstreamLog(nats: NatsConnection, subjects: Subjects, options: { readMs: () => number }): Promise<EditLog> {
  const manager = await jetstreamManager(nats);
  return {
    follow: await followLog(nats, subjects, { everyMs: options.readMs }),
    end: async (partition) => (await manager.streams.info(subjects.logStream(partition))).state.last_seq,
  };
}
