/**
 * The effect of one very busy room on 200 ordinary rooms of the same room server. The ordinary rooms are measured twice
 * in the same run: before the busy room exists, and while it does. All rooms share two gateways, and the machine also
 * runs the load, so with few cores a part of the effect comes from the machine.
 */

import { cpuBetween, type CpuByRole, cpuByRole } from "./server-usage.ts";
import type { Comparison, ComparisonOutcome } from "./comparison.ts";
import type { Seat } from "./load/enter.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import type { PresenceMotion, PresenceFigures, PresenceLoad } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-large-room.bench.ts";
import type { Figures } from "./report.ts";
import { startCoroom } from "./systems/coroom.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const ORDINARY_ROOMS = 200;
const SMALL_ROOMS = 10;
const ORDINARY_MEMBERS = 3;
const ORDINARY: Omit<PresenceMotion, "ms"> = { movers: 2, movesPerSecond: 5, editors: 2, editsPerSecond: 0.5 };
const HOT_MOVERS_SHARE = 0.3;
const HOT: Omit<PresenceMotion, "ms" | "movers"> = { movesPerSecond: 30, editors: 10, editsPerSecond: 2 };
const MEASURE_MS = 15_000;
const SMALL_MS = 750;
const NO_LIMIT = String(1e9);

export const hotRoom: Comparison = {
  name: "hot-room",
  summary: `${ORDINARY_ROOMS} rooms of ${ORDINARY_MEMBERS} on one room server, alone and then beside one large room, a third of it moving at ${HOT.movesPerSecond} Hz and ${HOT.editors} editing`,
  clients: 1_000,
  smallClients: 30,
  run: async ({ clients, small, print }) => {
    // A late load process catches up at once, and a gateway would limit that rate.
    const system = await startCoroom({ small, settings: { PRESENCE_BURST: NO_LIMIT, PRESENCE_PER_SECOND_MAX: NO_LIMIT } });
    const [ordinary, hot] = [new Worker<PresenceLoad>("presence-load"), new Worker<PresenceLoad>("presence-load")];
    const ms = small ? SMALL_MS : MEASURE_MS;
    const heat = { ...HOT, ms, movers: Math.ceil(clients * HOT_MOVERS_SHARE) };
    const measured = async <Result>(run: () => Promise<Result>): Promise<[Result, CpuByRole]> => {
      const before = cpuByRole(system.processes);
      return [await run(), cpuBetween(before, cpuByRole(system.processes))];
    };
    try {
      const rooms = small ? SMALL_ROOMS : ORDINARY_ROOMS;
      await ordinary.call("open", await ordinarySeats(system, rooms));
      await ordinary.call("move", { ...ORDINARY, ms }); // Warm-up: a new process runs slowly.
      const [alone, aloneCpu] = await measured(() => ordinary.call("move", { ...ORDINARY, ms }));
      print(`${rooms} rooms of ${ORDINARY_MEMBERS}: every edit reached all members`);
      await hot.call("open", await seatsOf(system, clients, "hot"));
      await hot.call("move", heat);
      const [[beside, itself], besideCpu] = await measured(() =>
        Promise.all([ordinary.call("move", { ...ORDINARY, ms }), hot.call("move", heat)]),
      );
      print(`with a room of ${clients}: every edit reached all members`);
      const coroom = {
        ...figuresOf(beside, besideCpu, ms),
        ...latenciesOf("the hot room's", itself),
        "loads' own CPU, cores": ((beside.cpuSeconds + itself.cpuSeconds) * 1000) / ms,
      };
      return {
        figures: { coroom, alone: { ...figuresOf(alone, aloneCpu, ms), "loads' own CPU, cores": (alone.cpuSeconds * 1000) / ms } },
      } satisfies ComparisonOutcome;
    } finally {
      await Promise.all([ordinary.end(), hot.end()]);
      await system.stop();
    }
  },
};

async function ordinarySeats(system: MeasuredSystem, rooms: number): Promise<Seat[]> {
  const seats: Seat[] = [];
  for (let room = 0; room < rooms; room++) seats.push(...(await seatsOf(system, ORDINARY_MEMBERS, `ordinary-${room}`)));
  return seats;
}

function figuresOf(ordinary: PresenceFigures, cpu: CpuByRole, ms: number): Figures {
  const cores = Object.entries(cpu).map(([role, seconds]) => [`CPU of ${role}, cores`, (seconds * 1000) / ms] as const);
  return { ...latenciesOf("the ordinary rooms'", ordinary), ...Object.fromEntries(cores) };
}

function latenciesOf(whose: string, { edits, presence }: PresenceFigures): Figures {
  const kinds = { edits: Latencies.fromPairs(edits), presence: Latencies.fromPairs(presence) };
  const measured = Object.entries(kinds).filter(([, { total }]) => total > 0); // A room with a strongly reduced presence rate may have no sample.
  return Object.fromEntries(
    measured.flatMap(([kind, latencies]) =>
      [50, 99].map((percent) => [`${whose} ${kind} p${percent}, ms`, latencies.percentile(percent)] as const),
    ),
  );
}
