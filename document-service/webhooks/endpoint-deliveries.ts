/**
 * The deliveries to one endpoint: how many run at once, what follows each attempt, and which abandoned events are
 * reported to operations. Each endpoint has its own state, so that a failing one does not delay the others.
 */

import { assertNever } from "../../shared/assert.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Millis } from "../../shared/ids.ts";
import type { QueuedEvent } from "../ports.ts";
import { type DeliveryOptions, type DeliveryOutcome, type NextStep, planNext } from "./delivery.ts";

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

/** A failing endpoint may abandon thousands of events at once: operations receive at most one report in this time. */
const REPORT_MS_MIN = 60_000;

export class EndpointDeliveries {
  readonly #options: DeliveriesOptions;
  #underWay = 0;
  #reportedAt: Millis | undefined;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Take no event before an attempt ends. */
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
