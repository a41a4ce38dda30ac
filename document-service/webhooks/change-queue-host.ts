/** Carries out the effects of change-queue.ts: adds its events to the webhook queue, and reports whether each add succeeded. */

import { assertNever } from "../../shared/assert.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { Position, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { ChangeNotifications, WebhookQueue } from "../ports.ts";
import { ChangeQueue, type ChangeQueueEffect, type ChangeQueueInput, type ChangeQueueOptions } from "./change-queue.ts";

type Call = { readonly resolve: () => void; readonly reject: (cause: unknown) => void };

const TICK_MS = 250;
const WARNINGS = {
  change: "a change was not queued for webhooks; trying again",
  snapshot: "a snapshot was not queued for webhooks; no endpoint receives it",
} as const;

export class ChangeQueueHost implements ChangeNotifications {
  readonly #webhooks: Pick<WebhookQueue, "add">;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  readonly #queue: ChangeQueue;
  readonly #calls = new Map<number, Call>();
  #lastCall = 0;
  readonly #stopTicking: () => void;

  constructor(webhooks: Pick<WebhookQueue, "add">, options: ChangeQueueOptions, deps: { clock: Clock; log: Log }) {
    this.#webhooks = webhooks;
    this.#deps = deps;
    this.#queue = new ChangeQueue(options);
    this.#stopTicking = every(deps.clock, TICK_MS, () => this.#receive({ kind: "tick" }));
  }

  stop(): void {
    this.#stopTicking();
  }

  receiveEdits(room: RoomKey, position: Position, edits: number): void {
    this.#receive({ kind: "edits", room, position, edits });
  }

  queuePending(room: RoomKey): Promise<void> {
    return this.#call((call) => ({ kind: "queue-pending", room, call }));
  }

  receiveSnapshot(room: RoomKey, position: Position, bytes: number): Promise<void> {
    return this.#call((call) => ({ kind: "snapshot", room, position, bytes, call }));
  }

  receiveDeleted(room: RoomKey): Promise<void> {
    return this.#call((call) => ({ kind: "deleted", room, call }));
  }

  #call(input: (call: number) => ChangeQueueInput): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#lastCall += 1;
      this.#calls.set(this.#lastCall, { resolve, reject });
      this.#receive(input(this.#lastCall));
    });
  }

  #receive(input: ChangeQueueInput): void {
    const { clock } = this.#deps;
    for (const effect of this.#queue.receive(input, { now: clock.now(), date: clock.wallNow() })) this.#carryOut(effect);
  }

  #carryOut(effect: ChangeQueueEffect): void {
    switch (effect.kind) {
      case "add":
        void this.#add(effect);
        return;
      case "settled":
        return this.#takeCall(effect.call)?.resolve();
      case "rejected":
        return this.#takeCall(effect.call)?.reject(effect.cause);
      case "warn":
        return this.#deps.log.warn({ room: effect.room, cause: effect.cause }, WARNINGS[effect.of]);
      default:
        return assertNever(effect);
    }
  }

  async #add({ add, id, event }: ChangeQueueEffect & { kind: "add" }): Promise<void> {
    this.#receive(
      await this.#webhooks.add(id, event).then(
        () => ({ kind: "added", add }) as const,
        (cause: unknown) => {
          rethrowMistake(cause);
          return { kind: "add-failed", add, cause } as const;
        },
      ),
    );
  }

  #takeCall(call: number): Call | undefined {
    const taken = this.#calls.get(call);
    this.#calls.delete(call);
    return taken;
  }
}

/** Used if the settings name no endpoint. */
export const NO_NOTIFICATIONS: ChangeNotifications = {
  receiveEdits: () => {},
  queuePending: () => Promise.resolve(),
  receiveSnapshot: () => Promise.resolve(),
  receiveDeleted: () => Promise.resolve(),
};
