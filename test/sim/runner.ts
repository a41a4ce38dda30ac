/** Runs seeds on a separate thread, so that the main thread can terminate a run that does not return. */

import { parentPort, workerData } from "node:worker_threads";

import { minimize } from "./minimize.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { PLANTED_APPLICATION_BUGS } from "./planted-application-bugs.ts";
import { PLANTED_SERVICE_BUGS } from "./planted-service-bugs.ts";
import { PLANTED_WEBHOOK_BUGS } from "./planted-webhook-bugs.ts";
import type { RunAnswer, RunnerData, RunOrder } from "./run-orders.ts";
import { type Outcome, simulate } from "./simulation.ts";
import type { Sum } from "./tally.ts";
import { type Telemetry, telemetry } from "./world.ts";

const { planted: name, pulse } = workerData as RunnerData;
const planted = [...PLANTED_BUGS, ...PLANTED_SERVICE_BUGS, ...PLANTED_APPLICATION_BUGS, ...PLANTED_WEBHOOK_BUGS].find(
  (bug) => bug.name === name,
);
const counted = telemetry();

parentPort?.on("message", (order: RunOrder) => {
  void carryOut(order).then((answer) => parentPort?.postMessage(answer));
});

async function carryOut(order: RunOrder): Promise<RunAnswer> {
  switch (order.kind) {
    case "run": {
      const { seed, size, verbose } = order;
      const outcome = await simulate(seed, { size, telemetry: counted, planted, verbose, pulse });
      return outcome.failure === undefined && !verbose ? { kind: "well", sum: sumOf(outcome) } : { kind: "outcome", outcome };
    }
    case "minimize":
      return { kind: "outcome", outcome: await minimize(order.failed, { telemetry: telemetry(), planted, pulse }) };
    case "retrace": {
      const { seed, size, stepsMax } = order;
      return {
        kind: "outcome",
        outcome: await simulate(seed, { size, telemetry: telemetry(), planted, verbose: true, pulse, stepsMax }),
      };
    }
    case "count":
      return { kind: "counters", counters: await countersOf(counted) };
  }
}

function sumOf({ seed, size, failure, hash, steps, edits, acked, struck, healedInMs }: Outcome): Sum {
  return { seed, size, failure, hash, steps, edits, acked, struck, healedInMs };
}

/** The metrics of the parts, which show the code paths that the runs covered. */
async function countersOf({ registry }: Telemetry): Promise<(readonly [string, number])[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics
    .filter(({ type }) => String(type) === "counter")
    .flatMap(({ name: metric, values }) =>
      values.map(({ value, labels }) => [`${metric} ${Object.values(labels).join(" ")}`, value] as const),
    );
}
