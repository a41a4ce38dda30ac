/**
 * A room grows from 2 to 60 to 1,000 participants and shrinks to 30, while two participants edit and some move their
 * cursors. At every size each client's list of participants becomes complete and exact. The room changes its presence
 * mode once in each direction, on every client and in the operations events. Every client receives every edit in order.
 * A violation ends the run.
 *
 * Edits sent within a second of a change of mode show its cost.
 */

import { Latencies, type LatencyPairs } from "../cli/bench/latencies.ts";
import { operationsEvents } from "../test/system/operations-events.ts";
import type { Comparison, ComparisonOutcome } from "./comparison.ts";
import type { GrowingLoad, GrowthStage } from "./load/growing-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-large-room.bench.ts";
import type { Figures } from "./report.ts";
import { coroomFor } from "./systems/coroom.ts";

const SMALL_SIZE = 2;
const MIDDLE_SIZE = 60;
const LAST_SIZE = 30;
const REST_MS = 6_000;
const SMALL_REST_MS = 300;
export const SMALL_MODE = { MODE_MS_MIN: "1000" };
const MOTION = { editsPerSecond: 5, movers: 20, movesPerSecond: 20 };

export const growingRoom: Comparison = {
  name: "growing-room",
  summary: `a room of ${SMALL_SIZE}, ${MIDDLE_SIZE}, all clients and ${LAST_SIZE}, with edits and moving cursors; every list right, one change of mode in each direction`,
  clients: 1_000,
  smallClients: 70,
  run: async ({ clients, small, print, coroom }) => {
    const system = await coroomFor(coroom, { small, settings: small ? SMALL_MODE : {} });
    const load = new Worker<GrowingLoad>("growing-load");
    const seats = await seatsOf(system, clients, "growing");
    const figures: Record<string, number> = {};
    try {
      await load.call("open", { seats: seats.slice(0, SMALL_SIZE), motion: MOTION });
      for (const size of [SMALL_SIZE, MIDDLE_SIZE, clients, LAST_SIZE]) {
        const stage = await load.call("become", { seats: seats.slice(0, size), restMs: small ? SMALL_REST_MS : REST_MS });
        Object.assign(figures, figuresOf(size, stage));
        print(`${size} participants, and every list names exactly these`);
      }
      await load.call("untilModes", 3);
      const { modes, atSwitches, edits } = await load.call("finish", undefined as never);
      for (const received of modes)
        if (received.join() !== "flat,hierarchical,flat")
          throw new Error(`a permanent participant received these modes: ${received.join()}`);
      const transitions = await operationsEvents(system.natsUrl, system.environment, "mode_transition", 2);
      if (transitions.map(({ to }) => to).join() !== "hierarchical,flat")
        throw new Error(`the operations events have these transitions: ${JSON.stringify(transitions)}`);
      print(
        `${edits} edits reached all participants in order; one change of mode in each direction, at ${transitions.map(({ participants }) => participants).join(" and ")} participants`,
      );
      return {
        figures: { coroom: { ...figures, ...percentilesOf("edits within a second of a change of mode", atSwitches) } },
        more: { transitions },
      } satisfies ComparisonOutcome;
    } finally {
      await load.end();
      await system.stop();
    }
  },
};

function figuresOf(size: number, { settledMs, meanwhile, resting }: GrowthStage): Figures {
  return {
    [`to ${size}: every list right after the last came or left, ms`]: settledMs,
    ...percentilesOf(`edits on the way to ${size}`, meanwhile),
    ...percentilesOf(`edits at ${size}`, resting),
  };
}

function percentilesOf(of: string, pairs: LatencyPairs): Figures {
  const latencies = Latencies.fromPairs(pairs);
  if (latencies.total === 0) return {}; // The interval was too short for an edit.
  return {
    [`${of}: p50, ms`]: latencies.percentile(50),
    [`${of}: p99, ms`]: latencies.percentile(99),
    [`${of}: slowest, ms`]: latencies.percentile(100),
  };
}
