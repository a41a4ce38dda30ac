/** Metrics of tracing itself, one set for all roles of a process. */

import { Counter, type Registry } from "prom-client";

export type TraceMetrics = ReturnType<typeof traceMetrics>;

export const traceMetrics = (registry: Registry) => ({
  spans: counter(registry, "coroom_trace_spans_total", "Trace spans, by outcome: sent, refused, dropped", ["outcome"]),
  unfinished: counter(
    registry,
    "coroom_trace_unfinished_total",
    "Hops of traced edits that began and never ended, so that their span is incomplete",
    [],
  ),
});

function counter(registry: Registry, name: string, help: string, labelNames: readonly "outcome"[]): Counter<"outcome"> {
  const known = registry.getSingleMetric(name);
  return known instanceof Counter ? known : new Counter({ name, help, labelNames: [...labelNames], registers: [registry] });
}
