/**
 * What stronger acknowledgements cost: the same rooms on one nats-server and on three, with and without a sync to disk
 * before each acknowledgement. First everybody writes at a steady pace, then each as soon as the last edit is acknowledged.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Latencies } from "./load/latencies.ts";
import { Measured } from "./load/measured.ts";
import { TypingCluster } from "./typing-cluster.ts";

export const CONFIGURATIONS = [
  { name: "one nats-server", natsServers: 1, syncAlways: false },
  { name: "one nats-server, sync_interval: always", natsServers: 1, syncAlways: true },
  { name: "three copies", natsServers: 3, syncAlways: false },
  { name: "three copies, sync_interval: always", natsServers: 3, syncAlways: true },
] as const;

export type Cost = { readonly paced: Latencies; readonly flatOut: Latencies; readonly editsPerSecond: number };

const WARM_MS = 3_000;
const UNLIMITED = { TENANT_EDITS_PER_SECOND_MAX: "1000000000" };

export async function measureDurability(
  { natsServers, syncAlways }: (typeof CONFIGURATIONS)[number],
  { rooms, seconds }: { rooms: number; seconds: number },
): Promise<Cost> {
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
    const paced = await measure(typing, seconds);
    for (const room of typing.rooms) room.onAcked = (writer) => room.send(writer);
    await sleep(WARM_MS);
    const flatOut = await measure(typing, seconds);
    for (const room of typing.rooms) room.onAcked = () => {};
    await typing.stop();
    return { paced, flatOut, editsPerSecond: flatOut.total / seconds };
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
