/**
 * Delivers what is queued to the endpoints, each by itself, so that one that is down keeps no other waiting. What fails
 * comes again after a pause; what is given up operations are told of.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Log } from "../../shared/log.ts";
import type { Operations } from "../../shared/operations.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";
import type { WebhookEndpoint } from "../../shared/webhook-endpoints.ts";
import { type DeliveryOptions, planNext } from "./delivery.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { QueuedEvent, WebhookCalls, WebhookQueue } from "../ports.ts";

export type WebhooksOptions = DeliveryOptions & { readonly webhookUrls: readonly WebhookEndpoint[]; readonly webhookDeliveriesMax: number };
export type WebhooksDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly operations: Operations;
  readonly random: () => number;
};

const RETRY_MS = 1_000;
const WAITING_MS = 5_000;
/** Of an endpoint that is down thousands may be given up at once: operations hear of the first in so long. */
const GIVEN_UP_QUIET_MS = 60_000;

export class WebhooksHost {
  readonly #queue: WebhookQueue;
  readonly #calls: WebhookCalls;
  readonly #options: WebhooksOptions;
  readonly #deps: WebhooksDeps;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<unknown>;
  readonly #toldAt = new Map<string, number>();

  constructor(queue: WebhookQueue, calls: WebhookCalls, options: WebhooksOptions, deps: WebhooksDeps) {
    this.#queue = queue;
    this.#calls = calls;
    this.#options = options;
    this.#deps = deps;
    this.#ended = Promise.all(options.webhookUrls.flatMap((endpoint) => [this.#serve(endpoint), this.#observe(endpoint)]));
  }

  /** What is under way is finished. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #serve(endpoint: WebhookEndpoint): Promise<void> {
    const { signal } = this.#stopping;
    const underWay = new Set<Promise<void>>();
    while (!signal.aborted) {
      try {
        for await (const queued of this.#queue.take(endpoint, this.#options.webhookDeliveriesMax, signal)) {
          const delivery = this.#deliver(endpoint, queued).finally(() => underWay.delete(delivery));
          underWay.add(delivery);
          if (underWay.size >= this.#options.webhookDeliveriesMax) await Promise.race(underWay);
        }
      } catch (cause) {
        unlessMistake(cause);
        this.#deps.log.warn({ endpoint: endpoint.name, cause }, "the queue of webhooks does not answer; trying again");
      }
      await pause(this.#deps.clock, RETRY_MS, signal);
    }
    await Promise.all(underWay);
  }

  async #deliver(endpoint: WebhookEndpoint, { id, event, attempt, settle }: QueuedEvent): Promise<void> {
    const { clock, metrics, log, random } = this.#deps;
    const began = clock.now();
    const outcome =
      event === undefined ? ({ kind: "refused", why: "it does not decode" } as const) : await this.#calls.deliver(endpoint, id, event);
    metrics.webhookSeconds.observe({ outcome: outcome.kind }, (clock.now() - began) / 1000);
    const next = planNext(outcome, attempt, this.#options, random());
    settle(next);
    if (next.kind === "again") {
      log.warn({ endpoint: endpoint.name, id, attempt, ...outcome, ...next }, "a webhook was not delivered; it is tried again");
    }
    if (next.kind === "give-up") this.#giveUp(endpoint, id, next.why);
  }

  #giveUp({ name }: WebhookEndpoint, id: string, why: string): void {
    const { clock, metrics, operations, log } = this.#deps;
    metrics.webhooksGivenUp.inc();
    log.error({ endpoint: name, id, why }, "a webhook was given up");
    const toldAt = this.#toldAt.get(name);
    if (toldAt !== undefined && clock.now() - toldAt < GIVEN_UP_QUIET_MS) return;
    this.#toldAt.set(name, clock.now());
    operations.report({ kind: "webhook_given_up", endpoint: name, id, reason: why });
  }

  async #observe(endpoint: WebhookEndpoint): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    while (!this.#stopping.signal.aborted) {
      try {
        metrics.webhooksWaiting.set({ endpoint: endpoint.name }, await this.#queue.waiting(endpoint));
      } catch (cause) {
        unlessMistake(cause);
        log.debug({ endpoint: endpoint.name, cause }, "the queue of webhooks does not say how much waits");
      }
      await pause(clock, WAITING_MS, this.#stopping.signal);
    }
  }
}
