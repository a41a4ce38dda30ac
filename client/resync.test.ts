import { expect, test } from "vitest";

import { type Epoch, type Millis, type Seq, START } from "../shared/ids.ts";
import { Resync } from "./resync.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const resync = (): Resync => new Resync({ baseMs: 500, maxMs: 15_000, jitterMs: 1_000 }, () => 0);

test("[RES1] the snapshot is fetched at once, and the room goes on where it ends", () => {
  const way = resync();
  expect(way.begin(at(0))).toBe(at(0));
  const position = { epoch: 3 as Epoch, seq: 70 as Seq };
  const payload = new Uint8Array([1]);
  expect(way.receive({ kind: "snapshot", position, payload }, at(0))).toEqual({ kind: "begin", position, payload });
});

test("[RES2] without a snapshot nothing was trimmed: the room begins at its start", () => {
  const way = resync();
  way.begin(at(0));
  expect(way.receive({ kind: "none" }, at(0))).toEqual({ kind: "begin", position: START, payload: undefined });
});

test("[RES3] while it cannot be had, it is tried again, later each time and not before the server allows", () => {
  const way = resync();
  way.begin(at(0));
  const unavailable = { kind: "unavailable", retryAfterMs: 0, why: "HTTP 503" } as const;
  expect(way.receive(unavailable, at(0))).toEqual({ kind: "wait", until: at(1_000) });
  expect(way.receive(unavailable, at(1_000))).toEqual({ kind: "wait", until: at(3_000) });
  expect(way.receive({ ...unavailable, retryAfterMs: 60_000 }, at(3_000))).toEqual({ kind: "wait", until: at(63_000) });
});

test("[RES4] a snapshot that did not help is not fetched again at once, until the room was caught up", () => {
  const way = resync();
  way.begin(at(0));
  expect(way.begin(at(0))).toBe(at(1_000));
  way.caughtUp();
  expect(way.begin(at(0))).toBe(at(0));
});
