/**
 * The latency budget of an edit: 99th percentile from its writer to all others, and the share of each hop.
 * docs/operations/probes.md names the metric of each hop, and the alerts use these numbers.
 */

/** Service level within one region, in milliseconds. */
export const BUDGET_MS = 100;

/** The sum of the hops is the budget. At the room server an edit waits for the append before its own. */
export const HOPS_MS = {
  "client to gateway": 10,
  "gateway to room server": 10,
  "room server": 10,
  "commit": 40,
  "fan-out": 10,
  "gateway to client": 20,
} as const;

/** A PING and its PONG, each within the budget of the first hop. The last hop has more, for bytes that wait in the gateway. */
export const ROUND_TRIP_MS = 2 * HOPS_MS["client to gateway"];

/** Histogram bounds in seconds. Each part of the budget that is compared with a histogram is one of these bounds. */
export const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
