/**
 * The deliveries to one endpoint: the number of concurrent attempts, the action after each attempt, and the abandoned
 * events that are reported to operations. Each endpoint has its own state, so that a failing one does not delay the
 * others. Rules DLV1 to DLV4.
 */

import { assertNever } from "../../shared/assert.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Millis } from "../../shared/ids.ts";
import type { DeliveryOutcome, NextStep, QueuedEvent } from "../ports.ts";

export type DeliveriesOptions = DeliveryOptions & { readonly webhookDeliveriesMax: number };

export type DeliveriesInput =
  /** The queue handed over the event. */
  | { readonly kind: "taken"; readonly queued: QueuedEvent }
  /** One attempt to deliver the event ended. `chance`: in [0, 1). */
  | { readonly kind: "attempted"; readonly queued: QueuedEvent; readonly outcome: DeliveryOutcome; readonly chance: number };

export type DeliveriesEffect =
  | { readonly kind: "attempt"; readonly queued: QueuedEvent; readonly event: WebhookEvent }
  /** The event does not decode. */
  | { readonly kind: "refuse"; readonly queued: QueuedEvent; readonly outcome: DeliveryOutcome }
  | { readonly kind: "settle"; readonly queued: QueuedEvent; readonly next: NextStep }
  | { readonly kind: "log-retry"; readonly queued: QueuedEvent; readonly outcome: DeliveryOutcome; readonly afterMs: number }
  | { readonly kind: "log-abandoned"; readonly id: string; readonly why: string }
  | { readonly kind: "report-abandoned"; readonly id: string; readonly why: string };

/** Minimum time between two reports to operations: a failing endpoint may abandon thousands of events at once. */
const REPORT_MS_MIN = 60_000;

export class EndpointDeliveries {
  readonly #options: DeliveriesOptions;
  #underWay = 0;
  #reportedAt: Millis | undefined;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Take no event until an attempt ends. */
  get isFull(): boolean {
    return this.#underWay >= this.#options.webhookDeliveriesMax;
  }

  receive(input: DeliveriesInput, now: Millis): DeliveriesEffect[] {
    switch (input.kind) {
      case "taken": {
        const { queued } = input;
        this.#underWay += 1;
        return [
          queued.event === undefined
            ? { kind: "refuse", queued, outcome: { kind: "refused", why: "it does not decode" } }
            : { kind: "attempt", queued, event: queued.event },
        ];
      }
      case "attempted":
        this.#underWay -= 1;
        return this.#settle(input, now);
      default:
        return assertNever(input);
    }
  }

  #settle({ queued, outcome, chance }: DeliveriesInput & { kind: "attempted" }, now: Millis): DeliveriesEffect[] {
    const next = planNext(outcome, queued.attempt, this.#options, chance);
    const settle: DeliveriesEffect = { kind: "settle", queued, next };
    switch (next.kind) {
      case "done":
        return [settle];
      case "again":
        return [settle, { kind: "log-retry", queued, outcome, afterMs: next.afterMs }];
      case "give-up":
        return [settle, { kind: "log-abandoned", id: queued.id, why: next.why }, ...this.#report(queued.id, next.why, now)];
      default:
        return assertNever(next);
    }
  }

  #report(id: string, why: string, now: Millis): DeliveriesEffect[] {
    if (this.#reportedAt !== undefined && now - this.#reportedAt < REPORT_MS_MIN) return [];
    this.#reportedAt = now;
    return [{ kind: "report-abandoned", id, why }];
  }
}

type DeliveryOptions = { readonly webhookAttemptsMax: number };

/**
 * The longest pause, even if an endpoint asks for a longer one. With a longer pause the event would outlive the queue,
 * and nats-server ignores a delay that it cannot represent.
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
