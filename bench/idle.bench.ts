/**
 * What a joined connection costs in memory while nothing happens: the growth of all server processes together, from
 * before the first joins until all have joined rooms of 8 and have been quiet for a while.
 *
 * Before the start as many joins as fit a tenth are made and undone, so that code and first buffers are not counted.
 *
 * After 60 s without input everybody becomes a spectator, which is told in all rooms, and 15 s after that a process that
 * has grown collects. A look in between finds what that left behind, a thousand bytes a connection more or not, so it
 * comes after that.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { ClientKey, RoomId } from "../shared/ids.ts";
import type { Experiment, ExperimentOptions, Outcome } from "./experiments.ts";
import { LoadProcesses } from "./load/load-processes.ts";
import type { RoomPlan } from "./load/plan.ts";
import { memoryByRole } from "./memory.ts";
import type { Figures } from "./report.ts";
import { startBare } from "./systems/bare.ts";
import { startCoroom } from "./systems/coroom.ts";
import { startRelay } from "./systems/relay.ts";
import type { MeasuredSystem, SystemName } from "./systems/system.ts";

const ROOM_OF = 8;
/** By then a process has collected what those who are gone left behind (COROOM_IDLE_MEMORY_MS). */
const GONE_MS = 60_000;
/** By then also what came of everybody having become a spectator. */
const QUIET_MS = 100_000;
/** The load's clients say nothing until all have joined, for which a gateway would close the first where that takes long. */
const NOBODY_PINGS_MS = 600_000;
const SMALL_QUIET_MS = 100;

export const idle: Experiment = {
  name: "idle",
  meaning: `growth in resident memory for each joined connection, in rooms of ${ROOM_OF}; bare uWebSockets.js and the relay beside it`,
  clients: 10_000,
  smallClients: 80,
  run: async (options) => {
    const figures: Record<string, Figures> = {};
    for (const start of options.systems.flatMap((name) => STARTS[name])) {
      const system = await start(options);
      try {
        figures[system.name] = await measure(system, options);
      } finally {
        await system.stop();
      }
    }
    return { figures } satisfies Outcome;
  },
};

/** The bare server belongs to the relay: both are the least that Coroom is compared with. */
const STARTS: Readonly<Record<SystemName, readonly ((options: ExperimentOptions) => Promise<MeasuredSystem>)[]>> = {
  coroom: [({ small }) => startCoroom({ gateways: 1, small, settings: { SILENCE_MS_MAX: String(NOBODY_PINGS_MS) } })],
  relay: [() => startBare(), () => startRelay(1)],
};

async function measure(system: MeasuredSystem, { clients, small, loadProcesses, say }: ExperimentOptions): Promise<Figures> {
  const [goneMs, quietMs] = small ? [SMALL_QUIET_MS, SMALL_QUIET_MS] : [GONE_MS, QUIET_MS];
  const warmUp = await LoadProcesses.open(await planRooms(system, "warm", Math.ceil(clients / 10)), loadProcesses);
  await warmUp.close();
  await sleep(goneMs); // Else the growth is counted from a process that still holds what those left behind.

  const before = memoryByRole(system.processes);
  const started = performance.now();
  const loads = await LoadProcesses.open(await planRooms(system, "idle", clients), loadProcesses);
  try {
    const joinedSeconds = (performance.now() - started) / 1000;
    await sleep(quietMs);
    const after = memoryByRole(system.processes);
    const joined = (await loads.close()).reduce((sum, { members }) => sum + members, 0);
    if (joined !== clients) throw new Error(`${joined} of ${clients} were joined`);
    say(`${system.name}: ${joined} joined in ${joinedSeconds.toFixed(1)} s, all still there at the end`);
    return growth(before, after, clients);
  } finally {
    await loads.end();
  }
}

function growth(before: Figures, after: Figures, clients: number): Figures {
  const each = Object.keys(after).map((role) => [role, (after[role]! - before[role]!) / clients] as const);
  return {
    "bytes a connection": each.reduce((sum, [, bytes]) => sum + bytes, 0),
    ...Object.fromEntries(each.map(([role, bytes]) => [`  ${role}`, bytes])),
  };
}

async function planRooms(system: MeasuredSystem, name: string, clients: number): Promise<RoomPlan[]> {
  const rooms = Math.ceil(clients / ROOM_OF);
  return Promise.all(
    Array.from({ length: rooms }, async (_, index) => {
      const members = Array.from({ length: Math.min(ROOM_OF, clients - index * ROOM_OF) }, async (__, member) => ({
        gateway: system.gateways[member % system.gateways.length]!,
        token: await system.token(`user-${index}-${member}`),
        clientKey: `member-${member}` as ClientKey,
        writes: false,
      }));
      return { room: `${name}-${index}` as RoomId, members: await Promise.all(members) };
    }),
  );
}
