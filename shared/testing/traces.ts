/** Traces of every edit for tests, with a manual clock. */

import { Registry } from "prom-client";

import { EditTraces } from "../io/traces/edit-traces.ts";
import type { Span } from "../io/traces/span.ts";
import { traceMetrics } from "../io/traces/trace-metrics.ts";

export class TestTraces {
  readonly spans: Span[] = [];
  readonly registry = new Registry();
  /** Microseconds. */
  now = 1_000;
  readonly edits = new EditTraces(
    { environment: "test", share: 1 },
    { send: (span) => void this.spans.push(span), now: () => this.now, metrics: traceMetrics(this.registry) },
  );

  /** The trace's hops in the order in which they ended. */
  get summary(): object[] {
    return this.spans.map(({ name, start, end, status, events = [] }) => ({
      name,
      took: [start, end],
      ...(status?.message === undefined ? {} : { failed: status.message }),
      ...(events.length === 0 ? {} : { events: events.map((event) => event.name) }),
    }));
  }
}
