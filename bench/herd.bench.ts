/**
 * A gateway with thousands of clients is killed, and all of them come back to two others at once. How long until each
 * is level with its room again, how fast the gateways let them in, and that nothing is lost: some type all the while.
 *
 * The floor is what the cap on new connections leaves room for: with 500 a second to each of two gateways nobody can
 * let 5,000 in in less than 4 s.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Cluster } from "../test/system/cluster.ts";
import type { Experiment, ExperimentOptions, Outcome } from "./experiments.ts";
import type { CrowdLoad, Place } from "./load/crowd-load.ts";
import { Latencies } from "./load/latencies.ts";
import { residentBytesOf } from "./memory.ts";
import { Worker } from "./load/worker.ts";
import { PATIENT } from "./systems/coroom.ts";

const ROOM_OF = 8;
const CONNECTS_PER_SECOND_MAX = 500;
/** One in so many types. */
const TYPIST_IN = 40;
const TYPED_BEFORE_MS = 3_000;
const TYPED_AFTER_MS = 2_000;
const SMALL_TYPED_MS = 1_000;
const SAMPLE_MS = 100;
/** A twentieth may come at once. */
const CAP_TOLERANCE = 0.05;

export const herd: Experiment = {
  name: "herd",
  meaning: `a gateway is killed under all its clients, in rooms of ${ROOM_OF}; they come back to two others that let ${CONNECTS_PER_SECOND_MAX} a second in each`,
  clients: 5_000,
  smallClients: 80,
  run: async (options) => ({ figures: { coroom: await measure(options) } }) satisfies Outcome,
};

async function measure({ clients, small, say }: ExperimentOptions): Promise<Record<string, number>> {
  const cap = small ? 40 : CONNECTS_PER_SECOND_MAX;
  const cluster = await Cluster.start({
    gateways: 3,
    roomServers: 1,
    settings: { LOG_LEVEL: "warn", ...(small ? PATIENT : {}), CONNECTS_PER_SECOND_MAX: String(cap) },
  });
  const load = new Worker<CrowdLoad>("crowd-load");
  try {
    const [killed, ...others] = cluster.gateways;
    await load.call("aim", [killed!.url]);
    await load.call("open", await planCrowd(cluster, clients, (index) => index % TYPIST_IN === 0));
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
      throw new Error(`a gateway let ${Math.round(mostAdmitted)} in within a second, over the cap of ${cap}`);
    say(`${clients} came back; ${edits} edits typed meanwhile, none lost, none twice, nobody shown an error`);
    const level = Latencies.fromPairs(times);
    return {
      "back and level, p10, ms": level.percentile(10),
      "back and level, p50, ms": level.percentile(50),
      "back and level, p90, ms": level.percentile(90),
      "back and level, p99, ms": level.percentile(99),
      "back and level, the last, ms": msToLast,
      "least that the cap allows, ms": Math.max(0, (1000 * (clients - others.length * cap)) / (others.length * cap)),
      "most let in by one gateway in a second": mostAdmitted,
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

/** What gateways say of the connections they let in, asked for often. */
class Arrivals {
  /** `asked` and `told`: the counts are of some moment between the two. */
  readonly #samples: { readonly asked: number; readonly told: number; readonly connects: readonly number[] }[] = [];
  readonly #sampling: Promise<void>;
  #over = false;

  constructor(httpUrls: readonly string[]) {
    this.#sampling = (async () => {
      while (!this.#over) {
        const asked = performance.now();
        const connects = await Promise.all(httpUrls.map(connectsOf));
        if (connects.every((count) => count !== undefined)) this.#samples.push({ asked, told: performance.now(), connects });
        await sleep(SAMPLE_MS);
      }
    })();
  }

  /** The most that one of them let in in any second, as far as the samples tell for certain: never too much. */
  async stop(): Promise<number> {
    this.#over = true;
    await this.#sampling;
    let most = 0;
    for (const [index, { told, connects }] of this.#samples.entries()) {
      const since = this.#samples.slice(0, index).findLast(({ asked }) => told - asked >= 1000);
      if (since !== undefined)
        connects.forEach((count, gateway) => (most = Math.max(most, ((count - since.connects[gateway]!) * 1000) / (told - since.asked))));
    }
    return most;
  }
}

/** Undefined: the line broke, as a kept one does when it is idle for too long; the next sample has another. */
async function connectsOf(httpUrl: string): Promise<number | undefined> {
  try {
    const metrics = await (await fetch(`${httpUrl}/metrics`)).text();
    return Number(/^coroom_gateway_connects_total (\d+)$/m.exec(metrics)?.[1] ?? 0);
  } catch (error) {
    if (error instanceof TypeError) return undefined; // What fetch throws then.
    throw error;
  }
}

/** Clients in rooms of 8, one after the other. */
export function planCrowd(cluster: Cluster, clients: number, types: (index: number) => boolean): Promise<Place[]> {
  return Promise.all(
    Array.from({ length: clients }, async (_, index) => ({
      room: `crowd-${Math.floor(index / ROOM_OF)}`,
      token: await cluster.token("*", `user-${index}`),
      types: types(index),
    })),
  );
}
