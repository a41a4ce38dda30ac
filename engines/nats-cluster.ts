/** Several nats-servers on one machine as a cluster, for tests with R=3 streams. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "./engine.ts";
import { EngineError } from "./engine-error.ts";
import type { FindOptions } from "./find.ts";
import { claimFreePorts } from "./free-port.ts";
import type { NatsUsers } from "./nats-config.ts";
import { jetStreamAnswers, startNatsServer } from "./nats-server.ts";

type NatsClusterOptions = FindOptions & {
  /** Each member has its own folder below. */
  readonly dataDir: string;
  readonly members: number;
  readonly syncAlways?: boolean;
  readonly users?: NatsUsers;
  /** Replaces the address from one member to another (by index), for example with a connection that a test can cut. */
  readonly route?: (from: number, to: number, address: string) => Promise<string>;
};

const HOST = "127.0.0.1";
const QUORUM_MS_MAX = 60_000;
const POLL_MS = 50;

/**
 * Resolves when JetStream accepts requests at every member. Members have the tags `az:1`, `az:2`, … like separate
 * zones.
 */
export async function startNatsCluster(options: NatsClusterOptions): Promise<readonly Engine[]> {
  const { dataDir, members, route, ...rest } = options;
  const ports = await claimFreePorts(members * 2, HOST);
  const addresses = ports.slice(members).map((port) => `${HOST}:${port}`);
  const routesOf = (from: number): Promise<string[]> =>
    Promise.all(
      addresses.map(async (address, to) => `nats-route://${route === undefined || to === from ? address : await route(from, to, address)}`),
    );
  const starts = ports.slice(members).map(async (clusterPort, index) =>
    startNatsServer({
      ...rest,
      dataDir: join(dataDir, `nats-${index + 1}`),
      serverName: `nats-${index + 1}`,
      port: ports[index] ?? 0,
      tags: [`az:${index + 1}`],
      cluster: { name: "coroom", port: clusterPort, routes: await routesOf(index), unadvertised: route !== undefined },
    }),
  );
  const started = await Promise.allSettled(starts);
  const engines = started.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  try {
    for (const start of started) if (start.status === "rejected") throw start.reason;
    await quorum(engines, options.users);
    return engines;
  } catch (error) {
    await Promise.all(engines.map((engine) => engine.stop()));
    throw error;
  }
}

async function quorum(engines: readonly Engine[], users: NatsUsers | undefined): Promise<void> {
  const deadline = performance.now() + QUORUM_MS_MAX;
  for (const engine of engines) {
    while (!(await jetStreamAnswers(engine.port, HOST, users))) {
      if (performance.now() > deadline)
        throw new EngineError(
          "start-failed",
          `the nats-server cluster elected no leader within ${QUORUM_MS_MAX / 1000} s. Read nats-server.log in the members' data folders`,
        );
      await sleep(POLL_MS);
    }
  }
}
