/**
 * Reads the vitals of one role from this process's metrics, every five seconds, and watches those of all processes.
 * Gateways and placement watch, so that the death of all processes of one of these roles is reported too.
 */

import type { Registry } from "prom-client";

import { OWN_BUS } from "../bus/bus-version.ts";
import { encodeJson } from "../bus/json-messages.ts";
import type { Operations } from "../bus/operations-events.ts";
import type { Subjects } from "../bus/subjects.ts";
import { type MetricReading, VITAL_SOURCES, vitalOf, type VitalRoom, Vitals, VITALS_EVERY_MS, type VitalSource } from "../bus/vitals.ts";
import { LostProcesses } from "../cluster/lost-processes.ts";
import type { Millis } from "../ids.ts";
import type { Clock } from "../time/clock.ts";
import { every } from "../time/every.ts";
import { subscribeJson } from "./nats-json.ts";
import { type NatsConnection, publish } from "./nats.ts";
import { version } from "./version.ts";

type Process = Pick<Vitals, "role" | "instance">;
type VitalsOf = Process & { readonly rooms?: () => readonly VitalRoom[] };

/** Publishes the vitals to gateways and placement. Returns a function that stops it and announces the orderly stop. */
export function publishVitals(nats: NatsConnection, subjects: Subjects, who: VitalsOf, registry: Registry, clock: Clock): () => void {
  return readVitals(who, registry, clock, (vitals) => publish(nats, subjects.vitals, encodeJson(vitals)));
}

/** Reports processes that end without an orderly stop. `own` publishes vitals itself. `receive`: called with all vitals. */
export function watchVitals(
  nats: NatsConnection,
  subjects: Subjects,
  own: Process,
  { clock, operations }: { clock: Clock; operations: Operations },
  receive: (vitals: Vitals) => void = () => {},
): void {
  const lost = new LostProcesses(own);
  subscribeJson(nats, subjects.vitals, Vitals, (vitals) => {
    for (const report of lost.receiveVitals(vitals, clock.now())) operations.report({ kind: "process_lost", ...report });
    receive(vitals);
  });
}

export function readVitals(
  { role, instance, rooms }: VitalsOf,
  registry: Registry,
  clock: Clock,
  receive: (vitals: Vitals) => void,
): () => void {
  let before: { readonly at: Millis; readonly readings: ReadonlyMap<string, MetricReading> } | undefined;
  let [isStopped, count] = [false, 0];
  const own = { role, instance, version: version(), bus: OWN_BUS };

  const read = async (): Promise<void> => {
    const at = clock.now();
    const values: Record<string, number> = { memoryBytes: process.memoryUsage.rss() };
    const readings = new Map<string, MetricReading>();
    for (const [name, source] of Object.entries<VitalSource>(VITAL_SOURCES[role])) {
      const reading = readings.get(source.metric) ?? (await readMetric(registry, source.metric));
      if (reading === undefined) continue;
      readings.set(source.metric, reading);
      const value = vitalOf(source, reading, before?.readings.get(source.metric), before === undefined ? 0 : at - before.at);
      if (value !== undefined && Number.isFinite(value)) values[name] = value;
    }
    before = { at, readings };
    if (!isStopped) receive({ ...own, ends: false, count: ++count, values, ...(rooms === undefined ? {} : { rooms: [...rooms()] }) });
  };
  void read();
  const stop = every(clock, VITALS_EVERY_MS, () => void read());
  return () => {
    isStopped = true;
    stop();
    receive({ ...own, ends: true, count: ++count, values: {} });
  };
}

/** Undefined: this process has no such metric. Labels are added together. */
async function readMetric(registry: Registry, name: string): Promise<MetricReading | undefined> {
  const read = await registry.getSingleMetric(name)?.get();
  if (read === undefined) return undefined;
  let [total, highest] = [0, 0];
  const buckets = new Map<number, number>();
  for (const { value, labels, ...named } of read.values) {
    const part = "metricName" in named ? named.metricName : name;
    const bound = labels["le" as keyof typeof labels];
    if (part === name) [total, highest] = [total + value, Math.max(highest, value)];
    else if (part === `${name}_bucket` && bound !== undefined) {
      const upper = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
      buckets.set(upper, (buckets.get(upper) ?? 0) + value);
    }
  }
  return { total, highest, buckets };
}
