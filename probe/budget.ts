/**
 * The latency budget: what an edit may take from its writer to everybody else, p99, and how that is shared out among its
 * hops. docs/operations/probes.md names for each the metric that tells it, and the alerts compare with these numbers.
 */

/** The service level, within one region. */
export const BUDGET_MS = 100;

/** Their sum is the budget. The room server is where an edit waits for the append before its own. */
export const HOPS_MS = {
  "client to gateway": 10,
  "gateway to room server": 10,
  "room server": 10,
  "commit": 40,
  "fan-out": 10,
  "gateway to client": 20,
} as const;

/** A PING's way is the first hop there and the last one back, with nothing to do in between. */
export const ROUND_TRIP_MS = 2 * HOPS_MS["client to gateway"];

/** Upper bounds, in seconds; each part of the budget that a histogram is judged by is one of them. */
export const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
