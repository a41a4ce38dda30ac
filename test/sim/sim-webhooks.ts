/**
 * The queue of webhooks, and the endpoints that receive them. The queue loses no event. It delivers an event again if
 * no service settles it in time. Pauses between attempts are shorter than the service asks for, so that a run has many
 * attempts.
 */

import type { QueuedEvent, DeliveryOutcome, NextStep, WebhookCalls, WebhookQueue } from "../../document-service/ports.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { TenantId } from "../../shared/ids.ts";
import type { WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SimJetStream } from "./sim-jetstream.ts";
import type { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimProcess } from "./sim-process.ts";
import type { WebhookJudge } from "./webhook-judge.ts";

/** `failing`: answers with an error. `hung`: answers nothing. `mute`: receives the event, and its answer is lost. */
export type EndpointState = "well" | "failing" | "hung" | "mute";

export const ENDPOINTS: readonly WebhookEndpoint[] = [
  { name: "all-tenants", tenant: undefined, url: "http://every.example" },
  { name: "acme", tenant: "acme" as TenantId, url: "http://acme.example" },
];
export const WEBHOOK_OPTIONS = {
  webhookUrls: ENDPOINTS,
  webhookQuietMs: 300,
  webhookChangeMsMax: 1_000,
  webhookAttemptsMax: 1_000,
  webhookDeliveriesMax: 2,
};

const TIMEOUT_MS = 400;
/** Time after which an event that no service settled is delivered again. */
const SETTLE_MS_MAX = 2_000;
const PAUSE_MS_MAX = 1_500;
/** Chance that an endpoint stays broken after the last fault, until all other work is done. */
const BROKEN_CHANCE = 0.3;

/** The parts of the world that webhooks use. */
type WebhookWorld = {
  readonly scheduler: Scheduler;
  readonly log: Pick<SimJetStream, "isReadable" | "takesWrites">;
  readonly latencyMs: () => number;
  readonly chance: (purpose: string) => Prng;
};
type Waiting = { readonly id: string; readonly event: WebhookEvent; dueAt: number; attempts: number };

export class SimWebhooks {
  /** Attempts that a fault affected. */
  spoiltEver = 0;
  readonly #world: WebhookWorld;
  readonly #judge: WebhookJudge;
  readonly #states = new Map<string, EndpointState>();
  readonly #ids = new Set<string>();
  /** By endpoint: the events that are not settled. */
  readonly #waiting = new Map(ENDPOINTS.map(({ name }) => [name, new Map<string, Waiting>()]));
  /** By endpoint: called when an event may be due. */
  readonly #wakes = new Map(ENDPOINTS.map(({ name }) => [name, new Set<() => void>()]));

  constructor(world: WebhookWorld, judge: WebhookJudge) {
    this.#world = world;
    this.#judge = judge;
  }

  setState(endpoint: string, state: EndpointState): void {
    this.#states.set(endpoint, state);
  }

  stateOf(endpoint: string): EndpointState {
    return this.#states.get(endpoint) ?? "well";
  }

  /** In some runs one endpoint stays broken while the judge waits for all others. */
  breakOne(): void {
    const prng = this.#world.chance("broken endpoint");
    if (prng.chance(BROKEN_CHANCE)) this.setState(ENDPOINTS[prng.below(ENDPOINTS.length)]!.name, prng.chance(0.5) ? "hung" : "failing");
  }

  repairAll(): void {
    for (const { name } of ENDPOINTS) this.setState(name, "well");
  }

  /** Describes an event that an endpoint without a fault has not received. */
  unsettled(): string | undefined {
    const well = ENDPOINTS.map(({ name }) => name).filter((name) => this.stateOf(name) === "well");
    return this.#judge.unsettled(well);
  }

  /** The queue as one document service reaches it. */
  queueOf(connection: SimNatsConnection, process: SimProcess): WebhookQueue {
    const { log } = this.#world;
    const ask = <Answer>(run: () => Answer): Promise<Answer> => connection.ask(run, () => log.isReadable && log.takesWrites);
    return {
      add: (id, event) => ask(() => this.#add(id, event)),
      waiting: ({ name }) => ask(() => this.#waiting.get(name)!.size),
      take: async function* (this: SimWebhooks, { name }: WebhookEndpoint, _: number, signal: AbortSignal): AsyncIterable<QueuedEvent> {
        while (!signal.aborted) {
          await new Promise<void>((resolve) => {
            const end = (): void => {
              signal.removeEventListener("abort", end);
              resolve();
            };
            signal.addEventListener("abort", end);
            this.#onDue(name, () => process.run(end));
          });
          if (signal.aborted) return;
          const taken = await ask(() => this.#take(name));
          if (taken === undefined) continue; // Another service has taken it.
          const settle = (next: NextStep): void => void ask(() => this.#settle(name, taken.id, next)).catch(() => {}); // It is taken again.
          yield { id: taken.id, event: taken.event, attempt: taken.attempts, settle };
        }
      }.bind(this),
    };
  }

  /** Requests of one document service, in place of `webhookCalls`. */
  callsOf(process: SimProcess): WebhookCalls {
    const { scheduler, latencyMs } = this.#world;
    return {
      deliver: ({ name }, id) =>
        new Promise((resolve) => {
          const callOff = process.clock.after(TIMEOUT_MS, () => resolve({ kind: "failed", why: "no answer in time" }));
          const answer = (outcome: DeliveryOutcome): void => {
            scheduler.after(latencyMs(), () => process.run(() => (callOff(), resolve(outcome))));
          };
          scheduler.after(latencyMs(), () => this.#receive(name, id, answer));
        }),
    };
  }

  #receive(endpoint: string, id: string, answer: (outcome: DeliveryOutcome) => void): void {
    const state = this.stateOf(endpoint);
    if (state !== "well") this.spoiltEver += 1;
    if (state === "failing") return answer({ kind: "failed", why: "HTTP 500" });
    if (state === "hung") return;
    this.#judge.receiveDelivered(endpoint, id);
    if (state === "well") answer({ kind: "delivered" });
  }

  #add(id: string, event: WebhookEvent): void {
    if (this.#ids.has(id)) return;
    this.#ids.add(id);
    this.#judge.receiveQueued(id, event);
    for (const { name } of ENDPOINTS) {
      this.#waiting.get(name)!.set(id, { id, event, dueAt: this.#world.scheduler.now, attempts: 0 });
      this.#wake(name);
    }
  }

  #take(endpoint: string): Waiting | undefined {
    const { now } = this.#world.scheduler;
    const due = [...this.#waiting.get(endpoint)!.values()].find(({ dueAt }) => dueAt <= now);
    if (due === undefined) return undefined;
    due.attempts += 1;
    this.#delay(endpoint, due, SETTLE_MS_MAX);
    return { ...due };
  }

  #settle(endpoint: string, id: string, next: NextStep): void {
    const waiting = this.#waiting.get(endpoint)!.get(id);
    if (next.kind === "again" && waiting !== undefined) this.#delay(endpoint, waiting, Math.min(next.afterMs, PAUSE_MS_MAX));
    else this.#waiting.get(endpoint)!.delete(id);
  }

  #delay(endpoint: string, waiting: Waiting, byMs: number): void {
    const { scheduler } = this.#world;
    waiting.dueAt = scheduler.now + byMs;
    scheduler.after(byMs, () => {
      if (this.#waiting.get(endpoint)!.has(waiting.id)) this.#wake(endpoint);
    });
  }

  #onDue(endpoint: string, run: () => void): void {
    const { now } = this.#world.scheduler;
    const isDue = [...this.#waiting.get(endpoint)!.values()].some(({ dueAt }) => dueAt <= now);
    if (isDue) run();
    else this.#wakes.get(endpoint)!.add(run);
  }

  #wake(endpoint: string): void {
    const wakes = [...this.#wakes.get(endpoint)!];
    this.#wakes.get(endpoint)!.clear();
    for (const wake of wakes) wake();
  }
}
