import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import { webhookEndpoints } from "../../shared/settings/webhook-endpoints.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { DeliveryOutcome, NextStep } from "../ports.ts";
import { documentServiceMetrics } from "../metrics.ts";
import { ChangeQueueHost } from "./change-queue-host.ts";
import { WebhooksHost } from "./delivery-host.ts";

const clock: Clock = {
  now: () => 0 as Millis,
  wallNow: () => 0 as UnixMillis,
  after: (ms, run) => (ms < 2_000 ? (setImmediate(run), () => {}) : () => {}),
};
const ENDPOINTS = webhookEndpoints("https://a.example/");
const EVENT: WebhookEvent = { type: "room.occupied", tenant: "acme", room: "notes", at: 0 };

/** Delivers one event for each outcome, in order. */
async function deliver(
  outcomes: readonly (DeliveryOutcome | "unreadable")[],
  webhookDeliveriesMax = 1,
  log: Log = SILENT_LOG,
): Promise<{ settled: NextStep[]; reports: OperationsReport[]; mostRunning: number }> {
  const settled: NextStep[] = [];
  const reports: OperationsReport[] = [];
  const queue = {
    add: () => Promise.resolve(),
    waiting: () => Promise.resolve(outcomes.length),
    async *take() {
      for (const [index, outcome] of outcomes.entries())
        yield {
          id: `e${index}`,
          event: outcome === "unreadable" ? undefined : EVENT,
          attempt: 8,
          settle: (next: NextStep) => void settled.push(next),
        };
      await new Promise(() => {}); // Nothing more is due.
    },
  };
  let [running, mostRunning] = [0, 0];
  const calls = {
    deliver: async (_: unknown, id: string) => {
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      await new Promise(setImmediate);
      running -= 1;
      return outcomes[Number(id.slice(1))] as DeliveryOutcome;
    },
  };
  new WebhooksHost(
    queue,
    calls,
    { webhookUrls: ENDPOINTS, webhookAttemptsMax: 8, webhookDeliveriesMax },
    {
      clock,
      log,
      metrics: documentServiceMetrics(new Registry()),
      operations: { report: (report) => void reports.push(report) },
      random: () => 0,
    },
  );
  while (settled.length < outcomes.length) await new Promise(setImmediate);
  await new Promise(setImmediate);
  return { settled, reports, mostRunning };
}

test("[WEBH5] an abandoned event is removed from the queue, and operations receive one report a minute", async () => {
  const { settled, reports } = await deliver([
    { kind: "delivered" },
    { kind: "failed", why: "HTTP 500" },
    "unreadable",
    { kind: "refused", why: "HTTP 410" },
  ]);
  expect(settled.map(({ kind }) => kind)).toEqual(["done", "give-up", "give-up", "give-up"]);
  expect(reports).toEqual([{ kind: "webhook_given_up", endpoint: "all-tenants", id: "e1", reason: "HTTP 500, 8 times" }]);
});

test("[WEBH13] thousands of abandoned events write few lines, because an endpoint may refuse each event", async () => {
  const written: object[] = [];
  const write = (facts: object): void => void written.push(facts);
  const log = limitedLog({ ...SILENT_LOG, warn: write, error: write }, clock);
  await deliver(
    Array.from({ length: 50 }, () => ({ kind: "refused", why: "HTTP 410" }) as const),
    1,
    log,
  );
  expect(written).toHaveLength(10);
});

test("[WEBH11] an endpoint receives at most the maximum number of events at once", async () => {
  const { settled, mostRunning } = await deliver(
    Array.from({ length: 7 }, () => ({ kind: "delivered" }) as const),
    2,
  );
  expect([settled.length, mostRunning]).toEqual([7, 2]);
});

test("[WEBH6] a change that cannot be queued stops the checkpoint that would cover it, and is queued with the next one", async () => {
  const queued: [string, WebhookEvent][] = [];
  let isAway = true;
  const queue = {
    add: (id: string, event: WebhookEvent) =>
      isAway ? Promise.reject(new Error("NATS is away")) : (queued.push([id, event]), Promise.resolve()),
  };
  const changes = new ChangeQueueHost(
    queue,
    { webhookUrls: ENDPOINTS, webhookQuietMs: 60_000, webhookChangeMsMax: 60_000 },
    { clock: { ...clock, after: () => () => {} }, log: SILENT_LOG },
  );
  const room = "acme.notes" as RoomKey;
  changes.receiveEdits(room, { epoch: 1 as Epoch, seq: 3 as Seq }, 3);
  await expect(changes.queuePending(room)).rejects.toThrow("NATS is away");
  isAway = false;
  changes.receiveEdits(room, { epoch: 1 as Epoch, seq: 4 as Seq }, 1);
  await changes.queuePending(room);
  await changes.queuePending(room);
  expect(queued).toEqual([
    ["changed-acme/notes-1-4", { type: "document.changed", tenant: "acme", room: "notes", at: 0, epoch: 1, seq: 4, edits: 4 }],
  ]);
});
