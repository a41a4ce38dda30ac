import { expect, test } from "vitest";

import type { VitalRole } from "../bus/vitals.ts";
import type { Millis } from "../ids.ts";
import { LostProcesses } from "./lost-processes.ts";

/** One step: this gateway's own vitals after five more seconds, and those of the named processes before it. */
function watch() {
  const lost = new LostProcesses({ instance: "gw-own", role: "gateway" });
  let now = 0;
  const receive = (instance: string, ends?: boolean): string[] => {
    const role: VitalRole = instance.startsWith("ds") ? "document-service" : instance.startsWith("gw") ? "gateway" : "placement";
    return lost
      .receiveVitals({ instance, role, ends }, now as Millis)
      .map((report) => `${report.state} ${report.instance} after ${report.forMs} with ${report.running}`);
  };
  const steps = (count: number, ...alive: string[]): string[] =>
    Array.from({ length: count }).flatMap(() => ((now += 5_000), [...alive, "gw-own"].flatMap((name) => receive(name, false))));
  return { receive, steps, wait: (ms: number) => (now += ms) };
}

test("[PRL1] a killed process is reported after 20 s with the number of others, and again when a new one takes its place", () => {
  const { steps } = watch();
  expect(steps(2, "ds-1", "ds-2", "placement-1", "gw-2")).toEqual([]);
  expect(steps(3, "ds-2", "placement-1")).toEqual([]);
  expect(steps(1, "ds-2", "placement-1")).toEqual(["lost ds-1 after 20000 with 1", "lost gw-2 after 20000 with 1"]);
  expect(steps(6, "ds-2", "placement-1"), "once").toEqual([]);
  expect(steps(2, "ds-2", "placement-1", "ds-3", "gw-3")).toEqual(["back ds-1 after 55000 with 1", "back gw-2 after 55000 with 1"]);
  expect(steps(1, "ds-2", "placement-1", "ds-3", "gw-3", "ds-4"), "further processes replace nothing").toEqual([]);
});

test("[PRL2] all processes of a role that are killed and start again at once are each reported with both times", () => {
  const { steps } = watch();
  steps(2, "ds-1", "ds-2");
  expect(steps(4, "ds-3", "ds-4")).toEqual([
    "lost ds-1 after 20000 with 0",
    "back ds-1 after 5000 with 0",
    "lost ds-2 after 20000 with 0",
    "back ds-2 after 5000 with 0",
  ]);
});

test("[PRL3] a rolling restart, and a process of a version that does not announce its stop, are no losses", () => {
  const { steps, receive } = watch();
  steps(2, "ds-1", "ds-2");
  receive("ds-old");
  for (const [before, after] of [
    ["ds-1", "ds-3"],
    ["ds-2", "ds-4"],
  ] as const) {
    expect(receive(before, true)).toEqual([]);
    expect(steps(6, ...(after === "ds-3" ? ["ds-2", "ds-3"] : ["ds-3", "ds-4"]))).toEqual([]);
  }
});

test("[PRL4] a paused process is back itself, and without NATS nobody is lost", () => {
  const { steps, wait } = watch();
  steps(2, "ds-1", "ds-2");
  wait(600_000); // Nothing arrives, not even this gateway's own vitals.
  expect(steps(1)).toEqual([]);
  expect(steps(1, "ds-1", "ds-2")).toEqual([]);
  expect(steps(4, "ds-1")).toEqual(["lost ds-2 after 20000 with 1"]);
  expect(steps(1, "ds-1", "ds-2")).toEqual(["back ds-2 after 25000 with 1"]);
});

test("[PRL7] a process that stopped in order while this gateway did not reach NATS is not lost, and nothing takes its place", () => {
  const { steps, wait } = watch();
  steps(2, "ds-1", "ds-2");
  wait(10_000); // The last vitals of ds-1 are missed.
  expect(steps(6, "ds-2")).toEqual([]);
  expect(steps(1, "ds-2", "ds-3")).toEqual([]);
  expect(steps(4, "ds-2")).toEqual(["lost ds-3 after 20000 with 1"]);
});

test("[PRL8] a loss and its end have the count of the last vitals before the loss, so each loss has its own", () => {
  const lost = new LostProcesses({ instance: "gw-own", role: "gateway" });
  const receive = (instance: string, at: number, count: number) =>
    lost.receiveVitals({ instance, role: "gateway", ends: false, count }, at as Millis).map((report) => `${report.state} ${report.count}`);
  for (const count of [1, 2]) receive("gw-2", count * 5_000, count);
  const own = Array.from({ length: 5 }, (_, step) => receive("gw-own", 10_000 + step * 5_000, step));
  expect(own.flat()).toEqual(["lost 2"]);
  expect(receive("gw-2", 40_000, 3)).toEqual(["back 2"]);
});

test("[PRL5] a process that stops in order after it was lost is not reported again, and nothing takes its place", () => {
  const { steps, receive } = watch();
  steps(2, "ds-1", "ds-2");
  expect(steps(4, "ds-2")).toEqual(["lost ds-1 after 20000 with 1"]);
  receive("ds-1", true);
  expect(steps(2, "ds-2", "ds-3")).toEqual([]);
});
