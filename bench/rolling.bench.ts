/**
 * A deployment while clients type: three gateways and two room servers are restarted one after the other. No edit may
 * be lost or repeated, and no user may see an error. Measures the acks, and the longest time in which a client received
 * nothing from the others in its room.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Latencies } from "../cli/bench/latencies.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import { planSdkClients } from "./herd.bench.ts";
import type { SdkLoad } from "./load/sdk-load.ts";
import { Worker } from "./load/worker.ts";
import { PATIENT } from "./systems/coroom.ts";

const EDITS_PER_SECOND = 2;
/** Time that the processes have for an orderly stop. Gateways spread their clients' reconnects over it. */
const DRAIN_MS = 8_000;
const SMALL_DRAIN_MS = 1_000;
const CALM_MS = 3_000;
const SMALL_CALM_MS = 500;

export const rolling: Comparison = {
  name: "rolling",
  summary: `three gateways and two room servers are restarted in turn under clients who type ${EDITS_PER_SECOND} edits/s each, in rooms of 8`,
  clients: 200,
  smallClients: 24,
  run: async (options) => ({ figures: { coroom: await measure(options) } }) satisfies ComparisonOutcome,
};

async function measure({ clients, small, print }: ComparisonOptions): Promise<Record<string, number>> {
  const drainMs = small ? SMALL_DRAIN_MS : DRAIN_MS;
  const cluster = await SystemCluster.start({
    gateways: 3,
    roomServers: 2,
    settings: { LOG_LEVEL: "warn", ...(small ? PATIENT : {}), DRAIN_MS_MAX: String(drainMs) },
  });
  const load = new Worker<SdkLoad>("sdk-load");
  const calm = () => sleep(small ? SMALL_CALM_MS : CALM_MS);
  try {
    const urls = cluster.gateways.map(({ url }) => url);
    await load.call("aim", urls);
    await load.call("open", await planSdkClients(cluster, clients, () => true));
    await load.call("startTyping", { editsPerSecond: EDITS_PER_SECOND });
    await calm();
    for (const { process, url } of cluster.gateways) {
      await load.call(
        "aim",
        urls.filter((other) => other !== url),
      );
      await process.restart();
      await load.call("aim", urls);
      await calm();
    }
    for (const roomServer of cluster.roomServers) {
      await roomServer.restart();
      await calm();
    }
    const { faults, shown, edits, acked, longestGapMs, snapshots } = await load.call("finish", undefined as never);
    if (faults.length + shown.length > 0) throw new Error([...faults, ...shown].join("\n"));
    print(`five processes restarted under ${clients} clients; ${edits} edits, none lost, none twice, no error shown`);
    const acks = Latencies.fromPairs(acked);
    return {
      "edits typed": edits,
      "lost": 0,
      "repeated": 0,
      "errors shown": 0,
      "longest gap seen by a client, ms": longestGapMs,
      "ack p50, ms": acks.percentile(50),
      "ack p99, ms": acks.percentile(99),
      "ack p99.9, ms": acks.percentile(99.9),
      "ack at most, ms": acks.percentile(100),
      "snapshots fetched": snapshots,
    };
  } finally {
    await load.end();
    await cluster.stop();
  }
}
