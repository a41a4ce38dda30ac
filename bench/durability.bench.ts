/**
 * The cost of stronger acknowledgements: the same rooms on one nats-server and on three, with and without a sync to
 * disk before each acknowledgement. First each writer sends at a steady rate, then as soon as its last edit is
 * acknowledged.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { positiveInteger } from "../shared/settings/settings.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { defineExperiment } from "./experiment.ts";
import { Measured } from "./load/measured.ts";
import { TypingCluster } from "./typing-cluster.ts";

const CONFIGURATIONS = [
  { name: "one nats-server", natsServers: 1, syncAlways: false },
  { name: "one nats-server, sync_interval: always", natsServers: 1, syncAlways: true },
  { name: "three copies", natsServers: 3, syncAlways: false },
  { name: "three copies, sync_interval: always", natsServers: 3, syncAlways: true },
] as const;

type DurabilityFigures = { readonly steady: Latencies; readonly flatOut: Latencies; readonly editsPerSecond: number };

const WARM_MS = 3_000;
const UNLIMITED = { TENANT_EDITS_PER_SECOND_MAX: "1000000000" };

async function measureDurability(
  { natsServers, syncAlways }: (typeof CONFIGURATIONS)[number],
  { rooms, seconds }: { rooms: number; seconds: number },
): Promise<DurabilityFigures> {
  const typing = await TypingCluster.start({
    rooms,
    roomServers: 1,
    editsPerSecond: 2,
    natsServers,
    syncAlways,
    settings: { WARM_COPIES: "false", ...UNLIMITED },
  });
  try {
    await sleep(WARM_MS);
    const steady = await measure(typing, seconds);
    for (const room of typing.rooms) room.onAcked = (writer) => room.send(writer);
    await sleep(WARM_MS);
    const flatOut = await measure(typing, seconds);
    for (const room of typing.rooms) room.onAcked = () => {};
    await typing.stop();
    return { steady, flatOut, editsPerSecond: flatOut.total / seconds };
  } catch (error) {
    await typing.abandon();
    throw error;
  }
}

async function measure({ rooms }: TypingCluster, seconds: number): Promise<Latencies> {
  const measured = new Measured();
  measured.begin(performance.now());
  for (const room of rooms) room.measured = measured;
  await sleep(seconds * 1_000);
  measured.end(performance.now());
  return measured.acked;
}

export const durability = defineExperiment({
  name: "durability",
  summary: "acks on one and on three nats-servers, with and without a sync to disk before each; three minutes",
  settings: {
    rooms: { parse: positiveInteger, fallback: 50, meaning: "rooms, each with one writer and one reader" },
    seconds: { parse: positiveInteger, fallback: 10, meaning: "seconds that each phase is measured" },
  },
  run: async (options, print) => {
    const shown = (acks: Latencies): string =>
      [50, 99].map((percent) => `p${percent} ${acks.percentile(percent).toFixed(1)} ms`).join(", ");
    for (const configuration of CONFIGURATIONS) {
      const { steady, flatOut, editsPerSecond } = await measureDurability(configuration, options);
      print(
        `${configuration.name.padEnd(40)} acks at ${2 * options.rooms} edits/s: ${shown(steady)}; as fast as acks arrive: ${editsPerSecond.toFixed(0)} edits/s, ${shown(flatOut)}`,
      );
    }
  },
});
