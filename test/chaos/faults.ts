/** The faults for processes on this machine, by name. */

import { cpSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Prng } from "../../shared/collections/prng.ts";
import type { Engine } from "../../engines/engine.ts";
import { runProgram } from "../../engines/run-program.ts";
import type { Process, ProcessRole, SystemCluster } from "../system/cluster.ts";
import type { Way } from "../system/cuttable-connection.ts";
import { leaderOfLog } from "../system/log-leader.ts";
import type { HostNames } from "./host-names.ts";
import { type ChaosFault, LONG_MS, SHORT_MS, type Struck } from "./target.ts";
import type { Zones } from "./zones.ts";

type DisturbedSystem = {
  readonly cluster: SystemCluster;
  readonly zones: Zones;
  readonly names: HostNames | undefined;
  processes(role: ProcessRole): readonly Process[];
  stepDown(server: string): Promise<void>;
  revive(process: Process): Promise<void>;
};

const PULSE_MS = 50;
/** A slowed server runs in one of this many pulses. */
const PULSES_STOPPED = 4;
const PRLIMIT_MS_MAX = 10_000;
const PART_OF_A_RECORD_BYTES = 50;
const ROLES: readonly ProcessRole[] = ["room-server", "gateway", "placement", "document-service", "leaderboard"];

export function processFaults(system: DisturbedSystem): ChaosFault[] {
  const { cluster, zones, names } = system;
  const servers = cluster.natsServers;
  const onEach = (done: string, lastsMsMax: number, strike: OnProcess): ChaosFault[] =>
    ROLES.map((role) => onProcess(system, role, done, lastsMsMax, strike));
  const onLeader = (done: string, lastsMsMax: number, strike: OnServer): ChaosFault =>
    onNats(system, `leader of the log ${done}`, lastsMsMax, () => leaderOfLog(cluster), strike);
  const onAny = (done: string, lastsMsMax: number, strike: OnServer): ChaosFault =>
    onNats(system, `nats-server ${done}`, lastsMsMax, async (prng) => prng.below(servers.length), strike);
  return [
    ...onEach("killed", SHORT_MS, kill),
    ...onEach("paused", LONG_MS, pause),
    ...onEach("restarted gracefully", 0, restart),
    ...onEach("cut off", LONG_MS, cutOff("both")),
    ...onEach("not received, though it receives", LONG_MS, cutOff("to")),
    ...onEach("receives nothing, though it is received", LONG_MS, cutOff("from")),
    ...(names === undefined ? [] : onEach("cut off once and without DNS", LONG_MS, loseNames(names))),
    ...(process.platform === "linux" ? onEach("without memory", LONG_MS, takeMemory) : []),
    {
      kind: "redis-server killed",
      lastsMsMax: SHORT_MS,
      disturbsNats: false,
      aim: async () => ({ victim: "redis", strike: () => killServers([cluster.redis!]) }),
    },
    onLeader("killed", LONG_MS, killServer),
    onLeader("paused", LONG_MS, pauseServer),
    onLeader("emptied and restarted", 0, emptyAndRestart),
    onAny("killed", LONG_MS, killServer),
    onAny("paused", LONG_MS, pauseServer),
    onAny("slow, as on a slow disk", LONG_MS, slowServer),
    onLeader("put back from an earlier copy of its disk", LONG_MS, putBackLater),
    onAny("put back from an earlier copy of its disk", LONG_MS, putBackLater),
    ...(process.platform === "linux"
      ? [
          onLeader("without disk space", LONG_MS, fillDisk),
          onAny("without disk space", LONG_MS, fillDisk),
          onLeader("without disk space in the middle of a write", LONG_MS, fillDiskWhileItWrites),
          onAny("without memory", LONG_MS, takeServerMemory),
          {
            kind: "redis-server without disk space",
            lastsMsMax: LONG_MS,
            disturbsNats: false,
            aim: async () => ({ victim: "redis", strike: () => fillRedisDisk(cluster.redis!) }),
          },
          {
            kind: "all stores without disk space",
            lastsMsMax: LONG_MS,
            disturbsNats: true,
            aim: async () => ({ victim: "nats-1, nats-2, nats-3, redis", strike: () => fillAllDisks(system) }),
          },
        ]
      : []),
    {
      kind: "nats-server cut off from the others, reachable for processes",
      lastsMsMax: LONG_MS,
      disturbsNats: true,
      aim: async (prng) => {
        const server = prng.below(servers.length);
        return { victim: `nats-${server + 1}`, strike: async () => repairLater(zones.cutRoutes(server)) };
      },
    },
    {
      kind: "all nats-servers killed at once",
      lastsMsMax: SHORT_MS,
      disturbsNats: true,
      aim: async () => ({ victim: "nats-1, nats-2, nats-3", strike: () => killServers(servers) }),
    },
    {
      kind: "zone cut off",
      lastsMsMax: LONG_MS,
      disturbsNats: true,
      aim: async (prng) => {
        const zone = prng.below(servers.length);
        return { victim: `zone ${zone + 1}`, strike: async () => repairLater(zones.cutZone(zone)) };
      },
    },
    {
      kind: "two zones cut from each other",
      lastsMsMax: LONG_MS,
      disturbsNats: true,
      aim: async (prng) => {
        const kept = prng.below(servers.length);
        const [one, other] = servers.map((_, zone) => zone).filter((zone) => zone !== kept) as [number, number];
        return { victim: `zones ${one + 1} and ${other + 1}`, strike: async () => repairLater(zones.cutBetween(one, other)) };
      },
    },
  ];
}

type OnProcess = (system: DisturbedSystem, process: Process, role: ProcessRole, index: number) => Promise<Struck>;
type OnServer = (system: DisturbedSystem, server: Engine, name: string) => Promise<Struck>;

function onProcess(system: DisturbedSystem, role: ProcessRole, done: string, lastsMsMax: number, strike: OnProcess): ChaosFault {
  return {
    kind: `${role} ${done}`,
    lastsMsMax,
    disturbsNats: false,
    aim: async (prng) => {
      const processes = system.processes(role);
      const index = prng.below(processes.length);
      return { victim: `${role}-${index + 1}`, strike: () => strike(system, processes[index]!, role, index) };
    },
  };
}

function onNats(
  system: DisturbedSystem,
  kind: string,
  lastsMsMax: number,
  choose: (prng: Prng) => Promise<number>,
  strike: OnServer,
): ChaosFault {
  return {
    kind,
    lastsMsMax,
    disturbsNats: true,
    aim: async (prng) => {
      const index = await choose(prng);
      const name = `nats-${index + 1}`;
      return { victim: name, strike: () => strike(system, system.cluster.natsServers[index]!, name) };
    },
  };
}

async function kill({ revive }: DisturbedSystem, process: Process): Promise<Struck> {
  await process.kill();
  return { undo: () => revive(process) };
}

async function pause(_: DisturbedSystem, process: Process): Promise<Struck> {
  process.signal("SIGSTOP");
  return { undo: async () => process.signal("SIGCONT") };
}

async function restart({ revive }: DisturbedSystem, process: Process): Promise<Struck> {
  await process.stop();
  return { undo: () => revive(process) };
}

function cutOff(way: Way): OnProcess {
  return ({ zones }, _, role, index) => repairLater(zones.cutOff({ role, index }, way));
}

/** The process has to resolve the names again, because its connections are closed. */
function loseNames(names: HostNames): OnProcess {
  return ({ zones }, _, role, index) => {
    const repair = names.forget({ role, index });
    zones.breakOff({ role, index });
    return repairLater(repair);
  };
}

/** The process may continue with the memory that it has, or end. A supervisor would start it again. */
async function takeMemory({ revive }: DisturbedSystem, process: Process): Promise<Struck> {
  await allowNoMore(process.pid);
  return {
    undo: async () => {
      await process.kill();
      await revive(process);
    },
  };
}

async function takeServerMemory(_: DisturbedSystem, server: Engine): Promise<Struck> {
  await allowNoMore(server.pid);
  return { undo: () => server.restart() };
}

/** From now on the process gets no memory from the system beyond what it has mapped. */
async function allowNoMore(pid: number): Promise<void> {
  const kilobytes = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1];
  await runProgram("prlimit", ["--pid", String(pid), `--as=${Number(kilobytes) * 1_024}:`], { msMax: PRLIMIT_MS_MAX });
}

async function repairLater(repair: () => void): Promise<Struck> {
  return { undo: async () => repair() };
}

function killServer(_: DisturbedSystem, server: Engine): Promise<Struck> {
  return killServers([server]);
}

async function killServers(servers: readonly Engine[]): Promise<Struck> {
  for (const server of servers) server.kill("SIGKILL");
  await Promise.all(servers.map(({ exited }) => exited));
  return { undo: async () => void (await Promise.all(servers.map((server) => server.restart()))) };
}

async function pauseServer(_: DisturbedSystem, server: Engine): Promise<Struck> {
  server.kill("SIGSTOP");
  return { undo: async () => server.kill("SIGCONT") };
}

/** Stops the server most of the time, so that every write and every answer is late. */
async function slowServer(_: DisturbedSystem, server: Engine): Promise<Struck> {
  server.kill("SIGSTOP");
  let pulses = 0;
  const pulse = setInterval(() => {
    pulses += 1;
    server.kill(pulses % PULSES_STOPPED === 0 ? "SIGCONT" : "SIGSTOP");
  }, PULSE_MS);
  return {
    undo: async () => {
      clearInterval(pulse);
      server.kill("SIGCONT");
    },
  };
}

/** The undo restarts the server, because a nats-server uses no JetStream after a failed write. */
async function fillDisk(_: DisturbedSystem, server: Engine): Promise<Struck> {
  await limitFileSize(server, 0);
  return { undo: () => server.restart() };
}

/** The largest file, the block of messages that the log writes, still takes a part of a record. */
async function fillDiskWhileItWrites({ cluster }: DisturbedSystem, server: Engine, name: string): Promise<Struck> {
  await limitFileSize(server, largestFile(join(cluster.folder, "nats", name, "jetstream")) + PART_OF_A_RECORD_BYTES);
  return { undo: () => server.restart() };
}

/** Redis refuses writes, and accepts them again when there is space. */
async function fillRedisDisk(redis: Engine): Promise<Struck> {
  await limitFileSize(redis, 0);
  return { undo: () => limitFileSize(redis, "unlimited") };
}

async function fillAllDisks(system: DisturbedSystem): Promise<Struck> {
  const { natsServers, redis } = system.cluster;
  const struck = await Promise.all([fillRedisDisk(redis!), ...natsServers.map((server) => fillDisk(system, server))]);
  return { undo: async () => void (await Promise.all(struck.map(({ undo }) => undo()))) };
}

/** Writes beyond this size fail, as on a full disk. Only the soft limit changes, which needs no privilege. */
async function limitFileSize({ pid }: Engine, bytes: number | "unlimited"): Promise<void> {
  await runProgram("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`], { msMax: PRLIMIT_MS_MAX });
}

function largestFile(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) =>
    statSync(join(folder, name), { throwIfNoEntry: false }),
  );
  return Math.max(0, ...files.map((file) => (file?.isFile() === true ? file.size : 0)));
}

/** Restarts a server as an operator does: calls `coroom ops step-down` first. */
async function emptyAndRestart({ stepDown }: DisturbedSystem, server: Engine, name: string): Promise<Struck> {
  await stepDown(name);
  await server.restart();
  return { undo: () => sleep(0) };
}

/** Copies its disk now. Later, as an operator who restores a volume does, puts the copy in the place of what it has by then. */
async function putBackLater({ cluster }: DisturbedSystem, server: Engine, name: string): Promise<Struck> {
  const disk = join(cluster.folder, "nats", name, "jetstream");
  const copy = `${disk}-earlier`;
  const whileStopped = async (change: () => void): Promise<void> => {
    server.kill("SIGTERM");
    await server.exited;
    change();
    await server.restart();
  };
  await whileStopped(() => cpSync(disk, copy, { recursive: true }));
  return {
    undo: () =>
      whileStopped(() => {
        rmSync(disk, { recursive: true });
        cpSync(copy, disk, { recursive: true });
        rmSync(copy, { recursive: true });
      }),
  };
}
