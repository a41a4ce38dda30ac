import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { standingOf } from "./room-status.ts";

const CONNECTED = { status: "connected", outage: undefined } as const;
const WAITING = { status: "waiting", outage: { why: "refused", retryInMs: 700 } } as const;
const FULL = { reason: "room-full", message: "full", until: 5_000 as Millis } as const;

test("[ROS1] a room that is wanted stands as its line does, until that is connected", () => {
  const room = { status: "connecting", putOff: undefined } as const;
  expect(standingOf(room, WAITING, 0 as Millis)).toEqual(WAITING);
  expect(standingOf(room, { status: "degraded", outage: undefined }, 0 as Millis).status).toBe("degraded");
  expect(standingOf(room, CONNECTED, 0 as Millis).status).toBe("connecting");
});

test("[ROS1] one that was left or refused stands so whatever its line does", () => {
  for (const status of ["disconnected", "stopped"] as const)
    expect(standingOf({ status, putOff: undefined }, WAITING, 0 as Millis)).toEqual({ status, outage: undefined });
});

test("[ROS2] one that lets nobody in says its own reason, and when it is asked again, at the earliest now", () => {
  const room = { status: "waiting", putOff: FULL } as const;
  expect(standingOf(room, CONNECTED, 1_000 as Millis).outage).toEqual({ why: "full", retryInMs: 4_000, reason: "room-full" });
  expect(standingOf(room, CONNECTED, 9_000 as Millis).outage?.retryInMs).toBe(0);
});
