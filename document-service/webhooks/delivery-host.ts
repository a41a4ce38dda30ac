/** Takes events from the queue of webhooks, and carries out the deliveries that endpoint-deliveries.ts decides. */

import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import { pause, rethrowMistake } from "../../shared/time/pause.ts";
import type { WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { DeliveryOutcome, QueuedEvent, WebhookCalls, WebhookQueue } from "../ports.ts";
import { type DeliveriesEffect, type DeliveriesInput, type DeliveriesOptions, EndpointDeliveries } from "./endpoint-deliveries.ts";

export type WebhooksOptions = DeliveriesOptions & { readonly webhookUrls: readonly WebhookEndpoint[] };
type WebhooksDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly operations: Operations;
  readonly random: () => number;
};

const RETRY_MS = 1_000;
const WAITING_MS = 5_000;

export class WebhooksHost {
  readonly #queue: WebhookQueue;
  readonly #calls: WebhookCalls;
  readonly #options: WebhooksOptions;
  readonly #deps: WebhooksDeps;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(queue: WebhookQueue, calls: WebhookCalls, options: WebhooksOptions, deps: WebhooksDeps) {
    this.#queue = queue;
    this.#calls = calls;
    this.#options = options;
    this.#deps = deps;
    this.#ended = Promise.all(options.webhookUrls.flatMap((endpoint) => [this.#serve(endpoint), this.#observe(endpoint)]));
  }

  /** Resolves once the attempts in progress have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #serve(endpoint: WebhookEndpoint): Promise<void> {
    const { signal } = this.#stopping;
    const deliveries = new EndpointDeliveries(this.#options);
    const underWay = new Set<Promise<void>>();
    while (!signal.aborted) {
      try {
        for await (const queued of this.#queue.take(endpoint, this.#options.webhookDeliveriesMax, signal)) {
          const delivery = this.#receive(endpoint, deliveries, { kind: "taken", queued }).finally(() => underWay.delete(delivery));
          underWay.add(delivery);
          if (deliveries.isFull) await Promise.race(underWay);
        }
      } catch (cause) {
        rethrowMistake(cause);
        this.#deps.log.warn({ endpoint: endpoint.name, cause }, "the queue of webhooks does not answer; trying again");
      }
      await pause(this.#deps.clock, RETRY_MS, signal);
    }
    await Promise.all(underWay);
  }

  async #receive(endpoint: WebhookEndpoint, deliveries: EndpointDeliveries, input: DeliveriesInput): Promise<void> {
    for (const effect of deliveries.receive(input, this.#deps.clock.now())) {
      const outcome = await this.#carryOut(endpoint, effect);
      if (outcome !== undefined) await this.#receive(endpoint, deliveries, outcome);
    }
  }

  async #carryOut(endpoint: WebhookEndpoint, effect: DeliveriesEffect): Promise<DeliveriesInput | undefined> {
    const { clock, metrics, log, operations } = this.#deps;
    const { name } = endpoint;
    switch (effect.kind) {
      case "attempt": {
        const began = clock.now();
        const outcome = await this.#calls.deliver(endpoint, effect.queued.id, effect.event);
        return this.#attempted(effect.queued, outcome, clock.now() - began);
      }
      case "refuse":
        return this.#attempted(effect.queued, effect.outcome, 0);
      case "settle":
        effect.queued.settle(effect.next);
        return undefined;
      case "log-retry": {
        const { id, attempt } = effect.queued;
        const details = { endpoint: name, id, attempt, ...effect.outcome, kind: "again", afterMs: effect.afterMs };
        log.warn(details, "a webhook was not delivered; it is tried again");
        return undefined;
      }
      case "log-abandoned":
        metrics.webhooksDropped.inc();
        // No error, because a limited log writes each error, and an endpoint may refuse thousands of events.
        log.warn({ endpoint: name, id: effect.id, why: effect.why }, "a webhook was abandoned");
        return undefined;
      case "report-abandoned":
        operations.report({ kind: "webhook_given_up", endpoint: name, id: effect.id, reason: effect.why });
        return undefined;
      default:
        return assertNever(effect);
    }
  }

  #attempted(queued: QueuedEvent, outcome: DeliveryOutcome, tookMs: number): DeliveriesInput {
    this.#deps.metrics.webhookSeconds.observe({ outcome: outcome.kind }, tookMs / 1000);
    return { kind: "attempted", queued, outcome, chance: this.#deps.random() };
  }

  async #observe(endpoint: WebhookEndpoint): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    while (!this.#stopping.signal.aborted) {
      try {
        metrics.webhooksWaiting.set({ endpoint: endpoint.name }, await this.#queue.waiting(endpoint));
      } catch (cause) {
        rethrowMistake(cause);
        log.debug({ endpoint: endpoint.name, cause }, "the number of waiting webhooks could not be read from their queue");
      }
      await pause(clock, WAITING_MS, this.#stopping.signal);
    }
  }
}
