/**
 * Many clients open one long document while one client types in it: 150 at once at 4 and at 20 MB, and 1,000 within two
 * seconds at 4 MB, plain and compressed. Each client joins, is redirected to the snapshot, fetches it through the one
 * gateway, and joins again from its position. A client has arrived when it has all bytes and is in the room.
 *
 * All bytes are compared with what other clients received under the same ETag, and each ETag's bytes are decoded once.
 * Load and servers share the machine.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Latencies } from "../cli/bench/latencies.ts";
import { claimPort } from "../engines/free-port.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import type { ArrivalsLoad } from "./load/arrivals-load.ts";
import type { Seat } from "./load/enter.ts";
import { Worker } from "./load/worker.ts";
import type { Figures } from "./report.ts";
import { cpuBetween, cpuByRole, type ServerProcess, memoryByRole } from "./server-usage.ts";
import { PATIENT } from "./systems/coroom.ts";

const MB = 1024 ** 2;
const SMALL_SHARE = 1 / 40;
const SAMPLE_MS = 50;
const COLD_MS_MAX = 120_000;
/** A gateway shares a snapshot request for a short time. After this delay it shares none of an earlier measurement. */
const SETTLE_MS = 3_000;
/**
 * Memory and log cover only these bytes: a new client needs the snapshot, and a client with the snapshot catches up.
 */
const HISTORY = { BACKLOG_BYTES_MAX: "16384", LOG_READ_BYTES_MAX: "16384", SNAPSHOT_LAG_BYTES_MAX: "8192", RECENT_BYTES_MAX: "4096" };
/** With `--small` no document is long enough to need a snapshot early, so snapshots are due sooner. */
const SMALL = { SNAPSHOT_AGE_MS_MAX: "1000", SNAPSHOT_INTERVAL_MS_MIN: "500", ...PATIENT };
const LIFTED = {
  HELLO_MS_MAX: "120000",
  EDITS_PER_SECOND: "1000000",
  CONNECTS_PER_SECOND_MAX: "1000000",
  DOCUMENT_WRITE_BURST: "1000000",
  SNAPSHOT_BURST: "1000000",
  GATEWAY_SNAPSHOT_BURST: "1000000",
};

type Leg = { readonly name: string; readonly megabytes: number; readonly share: number; readonly withinMs: number; readonly gzip: boolean };
/** `share`: share of the clients that arrive. */
const LEGS: readonly Leg[] = [
  { name: "4 MB, 150 at once, gzip", megabytes: 4, share: 0.15, withinMs: 0, gzip: true },
  { name: "4 MB, 150 at once", megabytes: 4, share: 0.15, withinMs: 0, gzip: false },
  { name: "20 MB, 150 at once, gzip", megabytes: 20, share: 0.15, withinMs: 0, gzip: true },
  { name: "20 MB, 150 at once", megabytes: 20, share: 0.15, withinMs: 0, gzip: false },
  { name: "4 MB, a thousand in 2 s, gzip", megabytes: 4, share: 1, withinMs: 2_000, gzip: true },
  { name: "4 MB, a thousand in 2 s", megabytes: 4, share: 1, withinMs: 2_000, gzip: false },
];

/** `documents`: URL of the document service. `written`: letters written, by room. */
type Stage = {
  readonly cluster: SystemCluster;
  readonly load: Worker<ArrivalsLoad>;
  readonly documents: string;
  readonly written: Map<string, number>;
};

export const arrivals: Comparison = {
  name: "arrivals",
  summary:
    "many clients open one long document while somebody types, through one gateway: 1,000 within 2 s at 4 MB, 150 at once at 4 and 20 MB, plain and compressed",
  clients: 1_000,
  smallClients: 20,
  run: async (options) => ({ figures: { coroom: await measure(options) } }) satisfies ComparisonOutcome,
};

async function measure(options: ComparisonOptions): Promise<Figures> {
  const port = await claimPort(0, "127.0.0.1", "documentsPort");
  const cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 1,
    settings: { LOG_LEVEL: "warn", ...LIFTED, ...HISTORY, ...(options.small ? SMALL : {}), DOCUMENTS_PORT: String(port) },
  });
  const load = new Worker<ArrivalsLoad>("arrivals-load");
  try {
    const figures: Record<string, number> = {};
    const stage: Stage = { cluster, load, documents: `http://127.0.0.1:${port}`, written: new Map() };
    for (const leg of LEGS) {
      for (const [figure, value] of Object.entries(await measureLeg(leg, stage, options))) figures[`${leg.name}: ${figure}`] = value;
    }
    return figures;
  } finally {
    await load.end();
    await cluster.stop();
  }
}

async function measureLeg(
  { name, megabytes, share, withinMs, gzip }: Leg,
  { cluster, load, documents, written }: Stage,
  { clients, small, seed, print }: ComparisonOptions,
): Promise<Figures> {
  const room = `long-${megabytes}`;
  const seatOf = async (who: string): Promise<Seat> => ({
    gateway: cluster.gateways[0]!.url,
    room,
    token: await cluster.token("*", who),
    clientKey: who,
  });
  const letters = await lettersWritten(written, load, await seatOf("the-writer"), megabytes * MB * (small ? SMALL_SHARE : 1), seed);
  const seats = await Promise.all(
    Array.from({ length: Math.max(1, Math.round(clients * share)) }, (_, index) => seatOf(`arrival-${index}`)),
  );
  await sleep(small ? 0 : SETTLE_MS);

  const processes: ServerProcess[] = [
    { role: "nats-server", pid: cluster.nats.pid },
    ...[cluster.gateways[0]!.process, cluster.roomServers[0]!, cluster.documentService].map(({ role, pid }) => ({ role, pid })),
  ];
  const before = await countsOf(documents, cluster.internalSecret);
  const cpuBefore = cpuByRole(processes);
  const peak = new Peak(processes);
  const typist = await seatOf("the-typist");
  const arrived = await load.call("arrive", { seats, withinMs, gzip, typist }).finally(() => peak.stop());
  const memory = await peak.stop();
  const cpu = cpuBetween(cpuBefore, cpuByRole(processes));
  const after = await countsOf(documents, cluster.internalSecret);

  if (arrived.lettersMin < letters) throw new Error(`a document has ${arrived.lettersMin} letters of ${letters}`);
  const heldMb = (memory["document-service"]! / MB).toFixed(0);
  const facts = [
    `${seats.length} arrived, ${Object.keys(arrived.sent).length} states sent, each the same to all, byte for byte, and decoded`,
    `${arrived.editsMeanwhile} edits meanwhile`,
    `${arrived.askedAgain} connections were cut off and opened again`,
    `the last client had all bytes after ${(arrived.msToLast / 1000).toFixed(1)} s, the document service held ${heldMb} MB at most`,
  ];
  print(`${name}: ${facts.join("; ")}`);
  const times = Latencies.fromPairs(arrived.times);
  return {
    "until the last has all bytes, ms": arrived.msToLast,
    "p50, ms": times.percentile(50),
    "p99, ms": times.percentile(99),
    "MB a client": arrived.bytes / seats.length / MB,
    "merges": after.merges - before.merges,
    "asked of the document service": after.reads - before.reads,
    "CPU of the load, ms": arrived.cpuMs,
    ...Object.fromEntries(Object.entries(cpu).map(([role, seconds]) => [`CPU of the ${role}, ms`, seconds * 1000])),
    ...Object.fromEntries(Object.entries(memory).map(([role, bytes]) => [`peak memory of the ${role}, MB`, bytes / MB])),
    "peak memory of all together, MB": Object.values(memory).reduce((sum, bytes) => sum + bytes, 0) / MB,
  };
}

/** Writes each document once and returns its number of letters. */
async function lettersWritten(
  written: Map<string, number>,
  load: Worker<ArrivalsLoad>,
  seat: Seat,
  bytes: number,
  seed: number,
): Promise<number> {
  const known = written.get(seat.room);
  if (known !== undefined) return known;
  const letters = await load.call("write", { seat, bytes, seed });
  written.set(seat.room, letters);
  const deadline = performance.now() + COLD_MS_MAX;
  while (!(await load.call("isCold", seat))) {
    if (performance.now() > deadline) throw new Error(`the room has no snapshot ${COLD_MS_MAX / 1000} s after it was written`);
    await sleep(500);
  }
  return letters;
}

async function countsOf(documents: string, secret: string): Promise<{ merges: number; reads: number }> {
  const metrics = await (await fetch(`${documents}/metrics`, { headers: { authorization: `Bearer ${secret}` } })).text();
  const count = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1] ?? 0);
  return { merges: count("coroom_documents_merge_seconds_count"), reads: count('coroom_documents_reads_total\\{answer="snapshot"\\}') };
}

/** The highest memory of each role's processes in any sample. */
class Peak {
  readonly #most: Record<string, number> = {};
  readonly #sampling: Promise<void>;
  #over = false;

  constructor(processes: readonly ServerProcess[]) {
    this.#sampling = (async () => {
      while (!this.#over) {
        for (const [role, bytes] of Object.entries(memoryByRole(processes))) this.#most[role] = Math.max(this.#most[role] ?? 0, bytes);
        await sleep(SAMPLE_MS);
      }
    })();
  }

  async stop(): Promise<Readonly<Record<string, number>>> {
    this.#over = true;
    await this.#sampling;
    return this.#most;
  }
}
