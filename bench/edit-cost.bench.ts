/**
 * The cost of one edit in counts: messages to and from NATS by role, and reads, writes and wake-ups by process. Counts
 * show a regression even on a busy machine, where times do not. The floors for comparison are the relay and
 * uWebSockets.js alone. Under load several messages share a write, so a busy machine shows fewer writes for each edit,
 * never more. Garbage varies: it becomes less while V8 compiles.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { claimFreePorts } from "../engines/free-port.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { defineExperiment } from "./experiment.ts";
import { garbagePerSecond } from "./garbage.ts";
import type { PeersLoad, PeersMotion } from "./load/peers-load.ts";
import { Worker } from "./load/worker.ts";
import { natsTraffic, type NatsTraffic, roleOfConnection } from "./nats-traffic.ts";
import { type PeersScenario, seatsOf } from "./peers.bench.ts";
import { cpuByRole, kernelCallsOf, type ServerProcess } from "./server-usage.ts";
import { bindToCore, startCoroom, startWhole, type WholeSystem } from "./systems/whole.ts";

type EditCosts = {
  readonly edits: number;
  /** For each edit, by process. */
  readonly processes: Readonly<Record<string, Readonly<Record<"reads" | "writes" | "wakeUps" | "cpuMicros", number>>>>;
  /** Messages for each edit, by role. Empty for a system whose nats-server is not watched. */
  readonly messages: Readonly<Record<string, Readonly<Record<"toNats" | "fromNats", number>>>>;
  /** Bytes of garbage of Coroom's main thread for each edit. NaN for another system, or if the time was too short. */
  readonly garbage: number;
};
type EditCostOptions = {
  readonly rooms: number;
  readonly editsPerSecond: number;
  readonly cursorsPerSecond: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
};

const MEMBERS = 4;

export const editCost = defineExperiment({
  name: "edit-cost",
  summary:
    "messages, reads, writes, wake-ups and garbage for each edit, by process and role, beside the relay and bare uWebSockets.js; one minute",
  settings: {
    rooms: { parse: positiveInteger, fallback: 50, meaning: `rooms of ${MEMBERS}` },
    seconds: { parse: positiveInteger, fallback: 10, meaning: "seconds that each system is counted" },
    warmUpSeconds: {
      parse: positiveInteger,
      fallback: 2,
      meaning: "seconds of load before; a process that has run for minutes needs less CPU",
    },
    cursorsPerSecond: { parse: wholeNumber, fallback: 0, meaning: "cursors per second of each member; their messages count for the edits" },
  },
  run: async (options, print) => {
    const load = { ...options, editsPerSecond: 1.5 };
    print("| process or role, for each edit | to NATS | from NATS | reads | writes | wake-ups | CPU, µs |\n|---|---|---|---|---|---|---|");
    for (const [name, costs] of [
      ["Coroom", await costsOfCoroom(load)],
      ["relay", await costsOf(() => startWhole("relay"), load)],
      ["bare", await costsOf(() => startWhole("bare"), load)],
    ] as const) {
      for (const [process, { reads, writes, wakeUps, cpuMicros }] of Object.entries(costs.processes))
        print(`| ${name}: ${process} | | | ${two(reads)} | ${two(writes)} | ${two(wakeUps)} | ${Math.round(cpuMicros)} |`);
      for (const [role, { toNats, fromNats }] of Object.entries(costs.messages))
        print(`| ${name}: connection of the ${role} | ${two(toNats)} | ${two(fromNats)} | | | | |`);
      if (!Number.isNaN(costs.garbage)) print(`| ${name}: garbage of node, ${Math.round(costs.garbage / 1024)} KB | | | | | | |`);
    }
  },
});

/** All roles in one process, beside a nats-server that counts. */
export async function costsOfCoroom(options: EditCostOptions): Promise<EditCosts> {
  const folder = mkdtempSync(join(tmpdir(), "edit-cost-"));
  const [monitorPort = 0] = await claimFreePorts(1, "127.0.0.1");
  const nats = await startNatsServer({ dataDir: join(folder, "nats"), monitorPort });
  try {
    const start = async (): Promise<WholeSystem> => {
      const system = await startCoroom({ COROOM_NATS_URL: nats.url }, ["--trace-gc"]);
      return { ...system, processes: [...system.processes, { role: "nats-server", pid: nats.pid }] };
    };
    return await costsOf(start, options, () => natsTraffic(monitorPort, roleOfConnection));
  } finally {
    await nats.stop();
    rmSync(folder, { recursive: true });
  }
}

async function costsOf(
  start: () => Promise<WholeSystem>,
  { rooms, editsPerSecond, cursorsPerSecond, seconds, warmUpSeconds }: EditCostOptions,
  readMessages: () => Promise<NatsTraffic> = async () => ({}),
): Promise<EditCosts> {
  const system = await start();
  const load = new Worker<PeersLoad>("peers-load");
  for (const { pid } of system.processes) bindToCore(pid, 0);
  bindToCore(load.pid, 1);
  try {
    const scenario: PeersScenario = {
      name: "edit-cost",
      title: "",
      rooms,
      members: MEMBERS,
      writers: MEMBERS,
      cursorsPerSecond,
      load: { kind: "steady", editsPerSecond },
    };
    await load.call("open", { name: system.dialect, seats: await seatsOf(system, scenario, 1) });
    const motion: PeersMotion = { ms: seconds * 1_000, writers: MEMBERS, editsPerSecond, cursorsPerSecond, seed: 1 };
    await load.call("drive", { ...motion, ms: warmUpSeconds * 1_000 });
    const logOf = ({ logFile }: WholeSystem): string => (logFile === undefined ? "" : readFileSync(logFile, "latin1"));
    const [before, messagesBefore, logBefore] = [countsOf(system.processes), await readMessages(), logOf(system)];
    const { editsSent } = await load.call("drive", motion);
    const [after, messagesAfter] = [countsOf(system.processes), await readMessages()];
    const garbage = garbagePerSecond(logOf(system), logBefore.length) / (editsSent / seconds);
    await load.call("close", undefined as never);
    const [processCosts, messages] = [perEdit(before, after, editsSent), perEdit(messagesBefore, messagesAfter, editsSent)];
    return { edits: editsSent, processes: processCosts, messages, garbage };
  } finally {
    await load.end();
    await system.stop();
  }
}

function countsOf(processes: readonly ServerProcess[]): Record<string, Record<"reads" | "writes" | "wakeUps" | "cpuMicros", number>> {
  const counts: Record<string, Record<"reads" | "writes" | "wakeUps" | "cpuMicros", number>> = {};
  for (const { role, pid } of processes.filter(({ role: program }) => program !== "sh")) {
    const sum = (counts[role] ??= { reads: 0, writes: 0, wakeUps: 0, cpuMicros: 0 });
    const { reads, writes, wakeUps } = kernelCallsOf(pid);
    sum.reads += reads;
    sum.writes += writes;
    sum.wakeUps += wakeUps;
    sum.cpuMicros += 1e6 * cpuByRole([{ role, pid }])[role]!;
  }
  return counts;
}

function perEdit<Name extends string>(
  before: Readonly<Record<string, Readonly<Record<Name, number>>>>,
  after: Readonly<Record<string, Readonly<Record<Name, number>>>>,
  edits: number,
): Record<string, Record<Name, number>> {
  const difference = (key: string, counts: Readonly<Record<Name, number>>): Record<Name, number> =>
    Object.fromEntries(
      Object.entries<number>(counts).map(([name, count]) => [name, (count - (before[key]?.[name as Name] ?? 0)) / edits]),
    ) as Record<Name, number>;
  return Object.fromEntries(Object.entries(after).map(([key, counts]) => [key, difference(key, counts)]));
}

function two(count: number): string {
  return count.toFixed(2);
}
