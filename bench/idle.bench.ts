/**
 * Memory of a joined connection without traffic: the growth of all server processes together, from before the first
 * join until all clients have joined rooms of 8 and have been quiet for a while.
 *
 * First a tenth of the clients joins and leaves, so that code and first buffers do not count.
 *
 * After 60 s without input every client becomes a spectator, and every room announces that. 15 s later a process that
 * has grown collects garbage. A measurement before that would vary by a thousand bytes a connection, so it comes later.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { ClientKey, RoomId } from "../shared/ids.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import { LoadProcesses } from "./load/load-processes.ts";
import type { LoadRoomPlan } from "./load/plan.ts";
import type { Figures } from "./report.ts";
import { coroomFor } from "./systems/coroom.ts";
import { startRelay, startBare } from "./systems/peers.ts";
import type { MeasuredSystem, SystemName } from "./systems/system.ts";
import { memoryByRole } from "./server-usage.ts";

const ROOM_OF = 8;
/** After this time a process has collected the memory of departed clients (COROOM_IDLE_MEMORY_MS). */
const GONE_MS = 60_000;
/** After this time the garbage of the spectators' announcements is collected as well. */
const QUIET_MS = 100_000;
/** Clients send no ping until all have joined. A gateway with the default limit would close the first ones. */
export const NOBODY_PINGS = { SILENCE_MS_MAX: "600000" };
const SMALL_QUIET_MS = 100;

export const idle: Comparison = {
  name: "idle",
  summary: `growth of resident memory for each joined connection, in rooms of ${ROOM_OF}; with bare uWebSockets.js and the relay`,
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
    return { figures } satisfies ComparisonOutcome;
  },
};

/** The bare server belongs to the relay: both are floors for the comparison. */
const STARTS: Readonly<Record<SystemName, readonly ((options: ComparisonOptions) => Promise<MeasuredSystem>)[]>> = {
  coroom: [({ coroom, small }) => coroomFor(coroom, { gateways: 1, small, settings: NOBODY_PINGS })],
  relay: [() => startBare(), () => startRelay(1)],
};

async function measure(system: MeasuredSystem, { clients, small, loadProcesses, print }: ComparisonOptions): Promise<Figures> {
  const [goneMs, quietMs] = small ? [SMALL_QUIET_MS, SMALL_QUIET_MS] : [GONE_MS, QUIET_MS];
  const warmUp = await LoadProcesses.open(await planRooms(system, "warm", Math.ceil(clients / 10)), loadProcesses);
  await warmUp.close();
  await sleep(goneMs); // Otherwise the first measurement includes the memory of the departed clients.

  const before = memoryByRole(system.processes);
  const started = performance.now();
  const loads = await LoadProcesses.open(await planRooms(system, "idle", clients), loadProcesses);
  try {
    const joinedSeconds = (performance.now() - started) / 1000;
    await sleep(quietMs);
    const after = memoryByRole(system.processes);
    const joined = (await loads.close()).reduce((sum, { members }) => sum + members, 0);
    if (joined !== clients) throw new Error(`${joined} of ${clients} clients were joined`);
    print(`${system.name}: ${joined} joined in ${joinedSeconds.toFixed(1)} s, all still joined at the end`);
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

async function planRooms(system: MeasuredSystem, name: string, clients: number): Promise<LoadRoomPlan[]> {
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
