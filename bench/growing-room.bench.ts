/**
 * A room that grows from 2 to 60 to 1000 and shrinks to 30, while two edit and some point all the time. At every size
 * everybody's list of who is there comes to be exactly right; the room changes its mode once each way, on every client
 * and as operations are told of it; every edit comes to everybody, in order. Whatever does not hold ends the run.
 *
 * What the change of mode itself costs the edits shows in those sent within a second of it.
 */

import { operationsEvents } from "../test/system/operations-events.ts";
import type { Experiment, Outcome } from "./experiments.ts";
import type { GrowingLoad, Stage } from "./load/growing-load.ts";
import { Latencies, type LatencyPairs } from "./load/latencies.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-crowd.bench.ts";
import type { Figures } from "./report.ts";
import { startCoroom } from "./systems/coroom.ts";

const SMALL_SIZE = 2;
const MIDDLE_SIZE = 60;
const LAST_SIZE = 30;
const REST_MS = 6_000;
const SMALL_REST_MS = 300;
const SMALL_MODE_MS_MIN = 1_000;
const MOTION = { editsPerSecond: 5, movers: 20, movesPerSecond: 20 };

export const growingRoom: Experiment = {
  name: "growing-room",
  meaning: `a room of ${SMALL_SIZE}, then ${MIDDLE_SIZE}, as many as said, and ${LAST_SIZE}, edited and pointed at all the time; every list right, one change of mode each way`,
  clients: 1_000,
  smallClients: 70,
  run: async ({ clients, small, say }) => {
    const system = await startCoroom({ small, settings: small ? { MODE_MS_MIN: String(SMALL_MODE_MS_MIN) } : {} });
    const load = new Worker<GrowingLoad>("growing-load");
    const seats = await seatsOf(system, clients, "growing");
    const figures: Record<string, number> = {};
    try {
      await load.call("open", { seats: seats.slice(0, SMALL_SIZE), motion: MOTION });
      for (const size of [SMALL_SIZE, MIDDLE_SIZE, clients, LAST_SIZE]) {
        const stage = await load.call("become", { seats: seats.slice(0, size), restMs: small ? SMALL_REST_MS : REST_MS });
        Object.assign(figures, figuresOf(size, stage));
        say(`${size} in the room, and every list names exactly them`);
      }
      await load.call("untilModes", 3);
      const { modes, atSwitches, edits } = await load.call("finish", undefined as never);
      for (const told of modes)
        if (told.join() !== "flat,hierarchical,flat")
          throw new Error(`somebody who was there all along was told of these modes: ${told.join()}`);
      const transitions = await operationsEvents(system.natsUrl, system.environment, "mode_transition", 2);
      if (transitions.map(({ to }) => to).join() !== "hierarchical,flat")
        throw new Error(`operations were told of these transitions: ${JSON.stringify(transitions)}`);
      say(
        `${edits} edits came to everybody, in order; one change of mode each way, at ${transitions.map(({ participants }) => participants).join(" and ")} participants`,
      );
      return {
        figures: { coroom: { ...figures, ...percentilesOf("edits within a second of a change of mode", atSwitches) } },
        more: { transitions },
      } satisfies Outcome;
    } finally {
      await load.end();
      await system.stop();
    }
  },
};

function figuresOf(size: number, { settledMs, meanwhile, resting }: Stage): Figures {
  return {
    [`to ${size}: every list right after the last came or left, ms`]: settledMs,
    ...percentilesOf(`edits on the way to ${size}`, meanwhile),
    ...percentilesOf(`edits at ${size}`, resting),
  };
}

function percentilesOf(of: string, pairs: LatencyPairs): Figures {
  const latencies = Latencies.fromPairs(pairs);
  if (latencies.total === 0) return {}; // So short was it.
  return {
    [`${of}: p50, ms`]: latencies.percentile(50),
    [`${of}: p99, ms`]: latencies.percentile(99),
    [`${of}: slowest, ms`]: latencies.percentile(100),
  };
}
