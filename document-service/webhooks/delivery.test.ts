import { expect, test } from "vitest";

import { planNext } from "./delivery.ts";

const OPTIONS = { webhookAttemptsMax: 8 };
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
