/**
 * Runs chaos on the system of `deploy/compose.yaml`: kills, pauses, restarts and disconnects containers with `docker`.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { readSettings } from "../../shared/settings/settings.ts";
import { withUser } from "../../cli/local-addresses.ts";
import { makeToken } from "../../cli/token.ts";
import { runProgram } from "../../engines/run-program.ts";
import { leaderboardSettings } from "../../leaderboard/config.ts";
import { type ChaosTarget, type ChaosFault, LONG_MS, SHORT_MS, type Struck } from "./target.ts";

/**
 * `project`: name of the compose project. `gatewayUrls`: addresses of its gateways on this machine. `natsPassword`:
 * password of the NATS user `operator`.
 */
type ContainersOptions = {
  readonly project: string;
  readonly environment: string;
  readonly gatewayUrls: readonly string[];
  readonly jwtSecret: string;
  readonly natsPassword: string;
};

const DOCKER_MS_MAX = 90_000;
const HEALTHY_MS_MAX = 300_000;
const POLL_MS = 200;
const NATS_PORT = 4222;

const ROLES = ["room-server", "gateway", "placement", "document-service", "leaderboard"] as const;

export function containersTarget({ project, environment, gatewayUrls, jwtSecret, natsPassword }: ContainersOptions): ChaosTarget {
  const containers = new Containers(project);
  return {
    gatewayUrls,
    environment,
    natsUrl: async () =>
      operatorUrl(await Promise.all(["nats-1", "nats-2", "nats-3"].map((service) => containers.address(service))), natsPassword),
    token: (room, user, { rights = ["read", "write"] } = {}) =>
      makeToken({ room: [room], user, name: user, rights, tenant: "default", ttl: 3_600 }, jwtSecret),
    scoring: readSettings(leaderboardSettings, { flags: { boardSessionPoints: "0" }, env: {} }),
    faults: [
      ...ROLES.flatMap((role) => faultsOf(containers, role, 2, false)),
      ...faultsOf(containers, "nats", 3, true),
      {
        kind: "all nats-servers killed at once",
        lastsMsMax: SHORT_MS,
        disturbsNats: true,
        aim: async () => ({ victim: "nats-1, nats-2, nats-3", strike: () => containers.kill("nats-1", "nats-2", "nats-3") }),
      },
    ],
  };
}

/** Addresses with the NATS user of operators, who may read the log. `deploy/compose.yaml` accepts no connection without a user. */
export function operatorUrl(addresses: readonly string[], password: string): string {
  return withUser(addresses.map((address) => `nats://${address}:${NATS_PORT}`).join(","), "operator", password);
}

function faultsOf(containers: Containers, role: string, count: number, disturbsNats: boolean): ChaosFault[] {
  const on = (done: string, lastsMsMax: number, strike: (service: string) => Promise<Struck>): ChaosFault => ({
    kind: `${role} ${done}`,
    lastsMsMax,
    disturbsNats,
    aim: async (prng) => {
      const victim = `${role}-${prng.below(count) + 1}`;
      return { victim, strike: () => strike(victim) };
    },
  });
  return [
    on("killed", SHORT_MS, (service) => containers.kill(service)),
    on("paused", LONG_MS, (service) => containers.pause(service)),
    on("restarted gracefully", 0, (service) => containers.restart(service)),
    on("cut off", LONG_MS, (service) => containers.cutOff(service)),
  ];
}

class Containers {
  readonly #project: string;

  constructor(project: string) {
    this.#project = project;
  }

  async kill(...services: readonly string[]): Promise<Struck> {
    const names = services.map((service) => this.#nameOf(service));
    await docker("kill", "--signal", "KILL", ...names);
    return {
      undo: async () => {
        await docker("start", ...names);
        for (const name of names) await untilHealthy(name);
      },
    };
  }

  async pause(service: string): Promise<Struck> {
    const name = this.#nameOf(service);
    await docker("pause", name);
    return { undo: () => docker("unpause", name).then(() => untilHealthy(name)) };
  }

  /** Sends SIGTERM, and SIGKILL only after compose's stop timeout. */
  async restart(service: string): Promise<Struck> {
    const name = this.#nameOf(service);
    await docker("restart", name);
    return { undo: () => untilHealthy(name) };
  }

  async cutOff(service: string): Promise<Struck> {
    const [name, network] = [this.#nameOf(service), `${this.#project}_default`];
    await docker("network", "disconnect", network, name);
    return { undo: () => docker("network", "connect", "--alias", service, network, name).then(() => untilHealthy(name)) };
  }

  async address(service: string): Promise<string> {
    return (await docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", this.#nameOf(service))).trim();
  }

  #nameOf(service: string): string {
    return `${this.#project}-${service}-1`;
  }
}

/** Uses the container's health check. It runs every few seconds, so its last result may be older than the fault. */
async function untilHealthy(name: string): Promise<void> {
  const deadline = performance.now() + HEALTHY_MS_MAX;
  while ((await docker("inspect", "--format", "{{.State.Health.Status}}", name)).trim() !== "healthy") {
    if (performance.now() > deadline) throw new Error(`${name} is not healthy: look at docker logs ${name}`);
    await sleep(POLL_MS);
  }
}

function docker(...args: readonly string[]): Promise<string> {
  return runProgram("docker", args, { msMax: DOCKER_MS_MAX });
}
