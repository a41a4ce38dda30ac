/**
 * Whether the console reaches a gateway, and when it asks again: every other second while it does, less often while it
 * does not. What was shown last stays, with the time since when it is old.
 */

import { clockTime } from "./format.ts";
import type { Tone } from "./answers.ts";

export type Outcome =
  { readonly kind: "answered" } | { readonly kind: "unreachable" } | { readonly kind: "too-fast"; readonly waitMs: number };
export type Reach =
  { readonly state: "asking" } | { readonly state: "live" } | { readonly state: "lost"; readonly since: Date; readonly failures: number };

const EVERY_MS = 2_000;
const EVERY_MS_MAX = 10_000;

export const ASKING: Reach = { state: "asking" };

export function after(reach: Reach, outcome: Outcome, now: Date): Reach {
  if (outcome.kind === "answered") return { state: "live" };
  if (outcome.kind === "too-fast") return reach;
  return reach.state === "lost" ? { ...reach, failures: reach.failures + 1 } : { state: "lost", since: now, failures: 1 };
}

export function nextAskMs(reach: Reach, outcome: Outcome): number {
  if (outcome.kind === "too-fast") return Math.max(EVERY_MS, outcome.waitMs);
  return reach.state === "lost" ? Math.min(EVERY_MS * reach.failures, EVERY_MS_MAX) : EVERY_MS;
}

export function reachRemark(reach: Reach): { readonly tone: Tone | "busy"; readonly text: string } {
  switch (reach.state) {
    case "asking":
      return { tone: "busy", text: "Asking…" };
    case "live":
      return { tone: "good", text: "Live" };
    case "lost":
      return { tone: "trouble", text: `Not reached since ${clockTime(reach.since)}` };
  }
}
