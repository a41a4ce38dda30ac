import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { reportedStatusOf } from "./room-status.ts";

const CONNECTED = { status: "connected", outage: undefined } as const;
const WAITING = { status: "waiting", outage: { why: "refused", retryInMs: 700 } } as const;
const FULL = { reason: "room-full", message: "full", until: 5_000 as Millis } as const;

test("[ROS1] a room that is being joined reports its connection's status until the connection is open, then its own", () => {
  const room = { status: "connecting", joinRetry: undefined } as const;
  expect(reportedStatusOf(room, WAITING, 0 as Millis)).toEqual(WAITING);
  expect(reportedStatusOf(room, { status: "degraded", outage: undefined }, 0 as Millis).status).toBe("degraded");
  expect(reportedStatusOf(room, CONNECTED, 0 as Millis).status).toBe("connecting");
});

test("[ROS1] the status of a left or rejected room does not depend on its connection", () => {
  for (const status of ["disconnected", "stopped"] as const)
    expect(reportedStatusOf({ status, joinRetry: undefined }, WAITING, 0 as Millis)).toEqual({ status, outage: undefined });
});

test("[ROS2] a room that admits no client shows its own reason and the time of the next attempt, which is never in the past", () => {
  const room = { status: "waiting", joinRetry: FULL } as const;
  expect(reportedStatusOf(room, CONNECTED, 1_000 as Millis).outage).toEqual({ why: "full", retryInMs: 4_000, reason: "room-full" });
  expect(reportedStatusOf(room, CONNECTED, 9_000 as Millis).outage?.retryInMs).toBe(0);
});
