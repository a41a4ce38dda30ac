/**
 * Whether the gateway answers, and when the console asks again: every 2 seconds while the gateway answers, less often
 * while it does not. The last data stays visible, with the time since which it is out of date.
 */

import { clockTime } from "./format.ts";
import type { HealthTone, FleetAnswer } from "./answers.ts";

export type PollOutcome =
  { readonly kind: "answered" } | { readonly kind: "unreachable" } | { readonly kind: "too-fast"; readonly waitMs: number };
export type PollState =
  { readonly state: "asking" } | { readonly state: "live" } | { readonly state: "lost"; readonly since: Date; readonly failures: number };

const EVERY_MS = 2_000;
const EVERY_MS_MAX = 10_000;

export const FIRST_POLL: PollState = { state: "asking" };

export function nextPollState(reach: PollState, outcome: PollOutcome, now: Date): PollState {
  if (outcome.kind === "answered") return { state: "live" };
  if (outcome.kind === "too-fast") return reach;
  return reach.state === "lost" ? { ...reach, failures: reach.failures + 1 } : { state: "lost", since: now, failures: 1 };
}

export function nextPollMs(reach: PollState, outcome: PollOutcome): number {
  if (outcome.kind === "too-fast") return Math.max(EVERY_MS, outcome.waitMs);
  return reach.state === "lost" ? Math.min(EVERY_MS * reach.failures, EVERY_MS_MAX) : EVERY_MS;
}

export function pollRemark(reach: PollState): { readonly tone: HealthTone | "busy"; readonly text: string } {
  switch (reach.state) {
    case "asking":
      return { tone: "busy", text: "Connecting…" };
    case "live":
      return { tone: "good", text: "Live" };
    case "lost":
      return { tone: "error", text: `No answer since ${clockTime(reach.since)}` };
  }
}

/**
 * Combines the last answer with earlier data. A gateway without NATS knows only itself, so the earlier data about other
 * processes stays.
 */
export function mergeFleet(before: FleetAnswer | undefined, answer: FleetAnswer): FleetAnswer {
  if (answer.reachesNats || before === undefined) return answer;
  const answered = new Set(answer.gateways.map(({ gateway }) => gateway));
  const others = before.gateways.filter(({ gateway }) => !answered.has(gateway));
  return { ...before, at: answer.at, reachesNats: false, gateways: [...answer.gateways, ...others] };
}
