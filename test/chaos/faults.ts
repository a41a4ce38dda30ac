/**
 * What is done to a running Coroom, each kind by its name. A fault chooses its victim while all is well, strikes, and is
 * undone later; by then everything that it ended runs again, as an orchestrator would have it.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { Engine } from "../../engines/engine.ts";
import type { Prng } from "../../shared/prng.ts";
import type { Process, Role } from "../system/cluster.ts";
import type { ChaosSystem } from "./chaos-system.ts";

/** `undo` resolves when all is as before. */
export type Struck = { readonly undo: () => Promise<void> };
export type Aimed = { readonly victim: string; readonly strike: () => Promise<Struck> };

type Fault = { readonly kind: string; readonly lastsMsMax: number; /** Takes from NATS what it needs to go on, or to be reached. */ readonly shakesNats: boolean; readonly aim: (system: ChaosSystem, prng: Prng) => Promise<Aimed> };

const SHORT_MS = 2_000;
const LONG_MS = 8_000;

export const FAULTS: readonly Fault[] = [
  ...onProcesses("killed", SHORT_MS, kill),
  ...onProcesses("paused", LONG_MS, pause),
  ...onProcesses("restarted in good order", 0, restart),
  onProcess("room-server", "cut off", LONG_MS, cutOff),
  onProcess("gateway", "cut off", LONG_MS, cutOff),
  onNats("leader of the log killed", LONG_MS, leader, killServer),
  onNats("leader of the log paused", LONG_MS, leader, pauseServer),
  onNats("leader of the log emptied and restarted", 0, leader, emptyAndRestart),
  onNats("nats-server killed", LONG_MS, any, killServer),
  onNats("nats-server paused", LONG_MS, any, pauseServer),
  {
    kind: "all nats-servers killed at once",
    lastsMsMax: SHORT_MS,
    shakesNats: true,
    aim: async ({ cluster }) => ({ victim: "nats-1, nats-2, nats-3", strike: () => killServers(cluster.natsServers) }),
  },
  {
    kind: "zone cut off",
    lastsMsMax: LONG_MS,
    shakesNats: true,
    aim: async ({ cluster, zones }, prng) => {
      const zone = prng.below(cluster.natsServers.length);
      return { victim: `zone ${zone + 1}`, strike: async () => mendLater(zones.cutZone(zone)) };
    },
  },
  {
    kind: "two zones cut from each other",
    lastsMsMax: LONG_MS,
    shakesNats: true,
    aim: async ({ cluster, zones }, prng) => {
      const kept = prng.below(cluster.natsServers.length);
      const [one, other] = cluster.natsServers.map((_, zone) => zone).filter((zone) => zone !== kept) as [number, number];
      return { victim: `zones ${one + 1} and ${other + 1}`, strike: async () => mendLater(zones.cutBetween(one, other)) };
    },
  },
];

type OnProcess = (system: ChaosSystem, process: Process, role: Role, index: number) => Promise<Struck>;

function onProcesses(done: string, lastsMsMax: number, strike: OnProcess): Fault[] {
  const roles: readonly Role[] = ["room-server", "gateway", "placement", "document-service"];
  return roles.map((role) => onProcess(role, done, lastsMsMax, strike));
}

function onProcess(role: Role, done: string, lastsMsMax: number, strike: OnProcess): Fault {
  return {
    kind: `${role} ${done}`,
    lastsMsMax,
    shakesNats: false,
    aim: async (system, prng) => {
      const processes = system.processes(role);
      const index = prng.below(processes.length);
      return { victim: `${role}-${index + 1}`, strike: () => strike(system, processes[index]!, role, index) };
    },
  };
}

function onNats(kind: string, lastsMsMax: number, choose: (system: ChaosSystem, prng: Prng) => Promise<number>, strike: (system: ChaosSystem, server: Engine, name: string) => Promise<Struck>): Fault {
  return {
    kind,
    lastsMsMax,
    shakesNats: true,
    aim: async (system, prng) => {
      const index = await choose(system, prng);
      const name = `nats-${index + 1}`;
      return { victim: name, strike: () => strike(system, system.cluster.natsServers[index]!, name) };
    },
  };
}

async function kill({ revive }: ChaosSystem, process: Process): Promise<Struck> {
  await process.kill();
  return { undo: () => revive(process) };
}

async function pause(_: ChaosSystem, process: Process): Promise<Struck> {
  process.signal("SIGSTOP");
  return { undo: async () => process.signal("SIGCONT") };
}

async function restart({ revive }: ChaosSystem, process: Process): Promise<Struck> {
  await process.stop();
  return { undo: () => revive(process) };
}

async function cutOff({ zones }: ChaosSystem, _: Process, role: Role, index: number): Promise<Struck> {
  return mendLater(zones.cutOff({ role, index }));
}

async function mendLater(mend: () => void): Promise<Struck> {
  return { undo: async () => mend() };
}

function leader(system: ChaosSystem): Promise<number> {
  return system.leaderOfLog();
}

async function any({ cluster }: ChaosSystem, prng: Prng): Promise<number> {
  return prng.below(cluster.natsServers.length);
}

function killServer(_: ChaosSystem, server: Engine): Promise<Struck> {
  return killServers([server]);
}

async function killServers(servers: readonly Engine[]): Promise<Struck> {
  for (const server of servers) server.kill("SIGKILL");
  await Promise.all(servers.map(({ exited }) => exited));
  return { undo: async () => void (await Promise.all(servers.map((server) => server.restart()))) };
}

async function pauseServer(_: ChaosSystem, server: Engine): Promise<Struck> {
  server.kill("SIGSTOP");
  return { undo: async () => server.kill("SIGCONT") };
}

/** As an operator restarts one: `coroom ops step-down` first. */
async function emptyAndRestart({ stepDown }: ChaosSystem, server: Engine, name: string): Promise<Struck> {
  await stepDown(name);
  await server.restart();
  return { undo: () => sleep(0) };
}
