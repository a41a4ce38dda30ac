/** Finds the nats-server that leads the first partition of the log. */

import { jetstreamManager } from "@nats-io/jetstream";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { isUnsettled } from "../../shared/io/jetstream-stores.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import type { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

const LEADER_MS_MAX = 60_000;

/** The index of the leader. Waits until there is a leader. */
export async function leaderOfLog({ natsUrl, natsServers, environment }: SystemCluster): Promise<number> {
  if (natsServers.length === 1) return 0; // A single server is no cluster, and names no leader.
  const nats = await connectNats({ servers: natsUrl, name: "log-leader" });
  try {
    let leader: string | undefined;
    await eventually(
      "the log has a leader",
      async () => (leader = await ask(nats, subjectsOf(environment).logStream(0))) !== undefined,
      LEADER_MS_MAX,
    );
    return Number(leader!.slice("nats-".length)) - 1;
  } finally {
    await closeNats(nats);
  }
}

async function ask(nats: NatsConnection, stream: string): Promise<string | undefined> {
  try {
    return (await (await jetstreamManager(nats)).streams.info(stream)).cluster?.leader;
  } catch (error) {
    if (isUnsettled(error)) return undefined; // An election is under way.
    throw error;
  }
}
