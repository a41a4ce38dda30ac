/**
 * The next step after one attempt to deliver an event: it is done, is tried again after a growing pause, or is
 * abandoned. Rules DLV1 to DLV4.
 */

/** `failed`: no answer, or an error that may pass. `refused`: the endpoint answers that it does not want the event. */
export type DeliveryOutcome =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly why: string; readonly retryAfterMs?: number }
  | { readonly kind: "refused"; readonly why: string };
export type NextStep =
  { readonly kind: "done" } | { readonly kind: "again"; readonly afterMs: number } | { readonly kind: "give-up"; readonly why: string };

export type DeliveryOptions = { readonly webhookAttemptsMax: number };

/**
 * The longest pause, also for an endpoint that asks for a longer one. The event would outlive the queue, and
 * nats-server treats a delay that it cannot represent as none.
 */
const PAUSE_MS_MAX = 3_600_000;
/** The pauses that Standard Webhooks suggests. The last one also follows every later attempt. */
const PAUSES_MS = [5_000, 30_000, 120_000, 600_000, 1_800_000, PAUSE_MS_MAX];
const JITTER = 0.2;

/** `attempt`: counted from 1. `chance`: in [0, 1); it spreads retries over time. */
export function planNext(outcome: DeliveryOutcome, attempt: number, { webhookAttemptsMax }: DeliveryOptions, chance: number): NextStep {
  switch (outcome.kind) {
    case "delivered":
      return { kind: "done" };
    case "refused":
      return { kind: "give-up", why: outcome.why };
    case "failed": {
      if (attempt >= webhookAttemptsMax) return { kind: "give-up", why: `${outcome.why}, ${attempt} times` };
      const pauseMs = PAUSES_MS[Math.min(attempt, PAUSES_MS.length) - 1]!;
      return {
        kind: "again",
        afterMs: Math.round(Math.max(pauseMs, Math.min(outcome.retryAfterMs ?? 0, PAUSE_MS_MAX)) * (1 + JITTER * chance)),
      };
    }
  }
}
