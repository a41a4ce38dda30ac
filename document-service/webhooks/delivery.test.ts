import { expect, test } from "vitest";

import { planNext } from "./delivery.ts";

const OPTIONS = { webhookAttemptsMax: 8 };
const failed = { kind: "failed", why: "HTTP 500" } as const;

test("[DLV1] what is delivered is done, what the endpoint wants no more is given up at once", () => {
  expect(planNext({ kind: "delivered" }, 1, OPTIONS, 0)).toEqual({ kind: "done" });
  expect(planNext({ kind: "refused", why: "HTTP 410" }, 1, OPTIONS, 0)).toEqual({ kind: "give-up", why: "HTTP 410" });
});

test("[DLV2] pauses grow to an hour, and after so many tries it is given up", () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7].map((attempt) => planNext(failed, attempt, OPTIONS, 0));
  expect(pauses).toEqual([5, 30, 120, 600, 1_800, 3_600, 3_600].map((seconds) => ({ kind: "again", afterMs: seconds * 1_000 })));
  expect(planNext(failed, 8, OPTIONS, 0)).toEqual({ kind: "give-up", why: "HTTP 500, 8 times" });
});

test("[DLV3] an endpoint that says when to come back is not asked before; not all come back at once", () => {
  expect(planNext({ ...failed, retryAfterMs: 60_000 }, 1, OPTIONS, 0)).toEqual({ kind: "again", afterMs: 60_000 });
  expect(planNext(failed, 1, OPTIONS, 0.5)).toEqual({ kind: "again", afterMs: 5_500 });
});

test("[DLV4] an endpoint that wants to be left alone for longer than the longest pause is asked after that, whatever it says", () => {
  for (const retryAfterMs of [3_600_001, 10_000_000_000_000, Infinity]) {
    expect(planNext({ ...failed, retryAfterMs }, 1, OPTIONS, 0)).toEqual({ kind: "again", afterMs: 3_600_000 });
  }
});
