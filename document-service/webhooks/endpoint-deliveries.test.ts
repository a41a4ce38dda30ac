import { expect, test } from "vitest";

import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Millis } from "../../shared/ids.ts";
import type { DeliveryOutcome, QueuedEvent } from "../ports.ts";
import { EndpointDeliveries, planNext } from "./endpoint-deliveries.ts";

const OPTIONS = { webhookAttemptsMax: 8, webhookDeliveriesMax: 2 };
const EVENT: WebhookEvent = { type: "room.occupied", tenant: "acme", room: "notes", at: 0 };
const queued = (id: string, attempt = 1): QueuedEvent => ({ id, event: EVENT, attempt, settle: () => {} });
const at = (ms: number) => ms as Millis;

function attempted(deliveries: EndpointDeliveries, event: QueuedEvent, outcome: DeliveryOutcome, ms = 0): string[] {
  deliveries.receive({ kind: "taken", queued: event }, at(ms));
  return deliveries.receive({ kind: "attempted", queued: event, outcome, chance: 0 }, at(ms)).map(({ kind }) => kind);
}

test("[EPD1] the number of concurrent attempts is limited by the setting", () => {
  const deliveries = new EndpointDeliveries(OPTIONS);
  const [first, second] = [queued("1"), queued("2")];
  expect(deliveries.receive({ kind: "taken", queued: first }, at(0))).toEqual([{ kind: "attempt", queued: first, event: EVENT }]);
  expect(deliveries.isFull).toBe(false);
  deliveries.receive({ kind: "taken", queued: second }, at(0));
  expect(deliveries.isFull).toBe(true);
  deliveries.receive({ kind: "attempted", queued: first, outcome: { kind: "delivered" }, chance: 0 }, at(0));
  expect(deliveries.isFull).toBe(false);
});

test("[EPD2] each attempt settles its event: done, again after a pause, or abandoned", () => {
  const deliveries = new EndpointDeliveries(OPTIONS);
  expect(attempted(deliveries, queued("1"), { kind: "delivered" })).toEqual(["settle"]);
  expect(attempted(deliveries, queued("2"), { kind: "failed", why: "HTTP 500" })).toEqual(["settle", "log-retry"]);
  expect(attempted(deliveries, queued("3", 8), { kind: "failed", why: "HTTP 500" })).toEqual([
    "settle",
    "log-abandoned",
    "report-abandoned",
  ]);
});

test("[EPD3] operations receive one report a minute of the events that an endpoint abandons", () => {
  const deliveries = new EndpointDeliveries(OPTIONS);
  const refused = (ms: number) => attempted(deliveries, queued("1"), { kind: "refused", why: "HTTP 410" }, ms).includes("report-abandoned");
  expect([refused(0), refused(59_999), refused(60_000)]).toEqual([true, false, true]);
});

test("[EPD4] an event that does not decode is refused without an attempt", () => {
  const unreadable: QueuedEvent = { ...queued("1"), event: undefined };
  expect(new EndpointDeliveries(OPTIONS).receive({ kind: "taken", queued: unreadable }, at(0))).toMatchObject([
    { kind: "refuse", outcome: { kind: "refused" } },
  ]);
});

const failed = { kind: "failed", why: "HTTP 500" } as const;

test("[DLV1] a delivered event is done, and a refused one is abandoned at once", () => {
  expect(planNext({ kind: "delivered" }, 1, OPTIONS, 0)).toEqual({ kind: "done" });
  expect(planNext({ kind: "refused", why: "HTTP 410" }, 1, OPTIONS, 0)).toEqual({ kind: "give-up", why: "HTTP 410" });
});

test("[DLV2] pauses between attempts grow to one hour, and the event is abandoned after the last attempt", () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7].map((attempt) => planNext(failed, attempt, OPTIONS, 0));
  expect(pauses).toEqual([5, 30, 120, 600, 1_800, 3_600, 3_600].map((seconds) => ({ kind: "again", afterMs: seconds * 1_000 })));
  expect(planNext(failed, 8, OPTIONS, 0)).toEqual({ kind: "give-up", why: "HTTP 500, 8 times" });
});

test("[DLV3] an endpoint's Retry-After is respected, and retries are spread over time", () => {
  expect(planNext({ ...failed, retryAfterMs: 60_000 }, 1, OPTIONS, 0)).toEqual({ kind: "again", afterMs: 60_000 });
  expect(planNext(failed, 1, OPTIONS, 0.5)).toEqual({ kind: "again", afterMs: 5_500 });
});

test("[DLV4] a Retry-After longer than the longest pause is shortened to it", () => {
  for (const retryAfterMs of [3_600_001, 10_000_000_000_000, Infinity]) {
    expect(planNext({ ...failed, retryAfterMs }, 1, OPTIONS, 0)).toEqual({ kind: "again", afterMs: 3_600_000 });
  }
});
