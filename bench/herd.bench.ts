/**
 * A gateway with thousands of clients is killed, and all clients reconnect to two others at once. The scenario measures
 * how long each client needs to catch up with its room and how fast the gateways admit them. Some clients type all the
 * time, and no edit may be lost.
 *
 * The minimum duration follows from the limit on new connections: at 500 a second for each of two gateways, 5,000
 * clients need 4 s.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Latencies } from "../cli/bench/latencies.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import type { SdkLoad, SdkClientPlan } from "./load/sdk-load.ts";
import { Worker } from "./load/worker.ts";
import { residentBytesOf } from "./server-usage.ts";
import { PATIENT } from "./systems/coroom.ts";

const ROOM_OF = 8;
const CONNECTS_PER_SECOND_MAX = 500;
/** One client in this many types. */
const TYPIST_IN = 40;
const TYPED_BEFORE_MS = 3_000;
const TYPED_AFTER_MS = 2_000;
const SMALL_TYPED_MS = 1_000;
const SAMPLE_MS = 100;
/** A burst may exceed the cap by this share. */
const CAP_TOLERANCE = 0.05;

export const herd: Comparison = {
  name: "herd",
  summary: `a gateway with all clients is killed, in rooms of ${ROOM_OF}; they reconnect to two others that admit ${CONNECTS_PER_SECOND_MAX} a second each`,
  clients: 5_000,
  smallClients: 80,
  run: async (options) => ({ figures: { coroom: await measure(options) } }) satisfies ComparisonOutcome,
};

async function measure({ clients, small, print }: ComparisonOptions): Promise<Record<string, number>> {
  const cap = small ? 40 : CONNECTS_PER_SECOND_MAX;
  const cluster = await SystemCluster.start({
    gateways: 3,
    roomServers: 1,
    settings: { LOG_LEVEL: "warn", ...(small ? PATIENT : {}), CONNECTS_PER_SECOND_MAX: String(cap) },
  });
  const load = new Worker<SdkLoad>("sdk-load");
  try {
    const [killed, ...others] = cluster.gateways;
    await load.call("aim", [killed!.url]);
    await load.call("open", await planSdkClients(cluster, clients, (index) => index % TYPIST_IN === 0));
    await load.call("startTyping", { editsPerSecond: 1 });
    await sleep(small ? SMALL_TYPED_MS : TYPED_BEFORE_MS);

    const arrivals = new Arrivals(others.map(({ httpUrl }) => httpUrl));
    await load.call(
      "aim",
      others.map(({ url }) => url),
    );
    const back = load.call("backAfterLoss", undefined as never);
    await killed!.process.kill();
    const { times, msToLast } = await back;
    const mostAdmitted = await arrivals.stop();
    const memory = {
      "memory of the two gateways, MB": megabytesOf(others.map(({ process }) => process.pid)),
      "memory of the load, MB": megabytesOf([load.pid]),
    };
    await sleep(small ? SMALL_TYPED_MS : TYPED_AFTER_MS);
    const { faults, shown, edits, snapshots } = await load.call("finish", undefined as never);
    if (faults.length + shown.length > 0) throw new Error([...faults, ...shown].join("\n"));
    if (mostAdmitted > cap * (1 + CAP_TOLERANCE))
      throw new Error(`a gateway admitted ${Math.round(mostAdmitted)} within a second, over the cap of ${cap}`);
    print(`${clients} clients returned; ${edits} edits typed meanwhile, none lost, none twice, no error shown`);
    const level = Latencies.fromPairs(times);
    return {
      "back and level, p10, ms": level.percentile(10),
      "back and level, p50, ms": level.percentile(50),
      "back and level, p90, ms": level.percentile(90),
      "back and level, p99, ms": level.percentile(99),
      "back and level, the last, ms": msToLast,
      "least that the cap allows, ms": Math.max(0, (1000 * (clients - others.length * cap)) / (others.length * cap)),
      "most admitted by one gateway in a second": mostAdmitted,
      "the cap": cap,
      ...memory,
      "snapshots fetched": snapshots,
    };
  } finally {
    await load.end();
    await cluster.stop();
  }
}

function megabytesOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentBytesOf(pid), 0) / 1024 ** 2;
}

/** Samples the gateways' counters of admitted connections. */
class Arrivals {
  /** A counter was read between `asked` and `answered`. */
  readonly #samples: { readonly asked: number; readonly answered: number; readonly connects: readonly number[] }[] = [];
  readonly #sampling: Promise<void>;
  #over = false;

  constructor(httpUrls: readonly string[]) {
    this.#sampling = (async () => {
      while (!this.#over) {
        const asked = performance.now();
        const connects = await Promise.all(httpUrls.map(connectsOf));
        if (connects.every((count) => count !== undefined)) this.#samples.push({ asked, answered: performance.now(), connects });
        await sleep(SAMPLE_MS);
      }
    })();
  }

  /** A lower bound of the connections that one gateway admitted in any second. */
  async stop(): Promise<number> {
    this.#over = true;
    await this.#sampling;
    let most = 0;
    for (const [index, { answered, connects }] of this.#samples.entries()) {
      const since = this.#samples.slice(0, index).findLast(({ asked }) => answered - asked >= 1000);
      if (since !== undefined)
        connects.forEach(
          (count, gateway) => (most = Math.max(most, ((count - since.connects[gateway]!) * 1000) / (answered - since.asked))),
        );
    }
    return most;
  }
}

/** Undefined when a kept connection was closed for being idle. The next sample opens a new one. */
async function connectsOf(httpUrl: string): Promise<number | undefined> {
  try {
    const metrics = await (await fetch(`${httpUrl}/metrics`)).text();
    return Number(/^coroom_gateway_connects_total (\d+)$/m.exec(metrics)?.[1] ?? 0);
  } catch (error) {
    if (error instanceof TypeError) return undefined; // fetch throws a TypeError when the connection breaks.
    throw error;
  }
}

/** Plans clients in rooms of 8. */
export function planSdkClients(cluster: SystemCluster, clients: number, types: (index: number) => boolean): Promise<SdkClientPlan[]> {
  return Promise.all(
    Array.from({ length: clients }, async (_, index) => ({
      room: `room-${Math.floor(index / ROOM_OF)}`,
      token: await cluster.token("*", `user-${index}`),
      types: types(index),
    })),
  );
}
