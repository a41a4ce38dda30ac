import { expect, test } from "vitest";

import { type Epoch, type Millis, type Seq, START } from "../../shared/ids.ts";
import type { ResyncReason } from "../../shared/wire/frames.ts";
import type { SnapshotAnswer } from "../ports.ts";
import { Resync } from "./catch-up.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const position = { epoch: 3 as Epoch, seq: 70 as Seq };
const snapshot: SnapshotAnswer = { kind: "snapshot", position, payload: new Uint8Array([1]) };
const unavailable: SnapshotAnswer = { kind: "unavailable", retryAfterMs: 0, why: "HTTP 503" };

function begun(reason: ResyncReason = "too-old"): Resync {
  const resync = new Resync({ baseMs: 500, maxMs: 15_000, jitterMs: 1_000 }, () => 0);
  resync.begin(reason, at(0));
  return resync;
}

test("[RES1] the snapshot is fetched at once, once, and the room continues where it ends", () => {
  const resync = begun();
  expect([resync.takeDue(at(0)), resync.takeDue(at(0))]).toEqual([true, false]);
  expect(resync.receiveSnapshot(snapshot, START, at(0))).toEqual({ position, payload: new Uint8Array([1]) });
  expect(resync.isActive).toBe(false);
});

test("[RES2] when no snapshot exists nothing was trimmed: the room begins at its start", () => {
  const resync = begun();
  resync.takeDue(at(0));
  expect(resync.receiveSnapshot({ kind: "none" }, START, at(0))).toEqual({ position: START, payload: undefined });
});

test("[RES3] a failed fetch is retried with growing waits, and not before the server allows", () => {
  const resync = begun();
  const dueAfter = (answer: SnapshotAnswer, now: number): number => {
    expect([resync.takeDue(at(now)), resync.receiveSnapshot(answer, START, at(now))]).toEqual([true, undefined]);
    return resync.dueAt! - at(0);
  };
  expect(dueAfter(unavailable, 0)).toBe(1_000);
  expect(resync.takeDue(at(999))).toBe(false);
  expect(dueAfter(unavailable, 1_000)).toBe(3_000);
  expect(dueAfter({ ...unavailable, retryAfterMs: 60_000 }, 3_000)).toBe(63_000);
});

test("[RES4] when a snapshot did not help, the next one waits, until the room has caught up", () => {
  const resync = begun();
  resync.takeDue(at(0));
  resync.receiveSnapshot(snapshot, START, at(0));
  resync.begin("too-old", at(0));
  expect(resync.dueAt).toBe(at(1_000));
  resync.caughtUp();
  resync.begin("too-old", at(0));
  expect(resync.dueAt).toBe(at(0));
});

test("[RES5] a snapshot that arrives after the connection was lost is ignored", () => {
  const resync = begun();
  resync.takeDue(at(0));
  resync.abandon();
  expect([resync.receiveSnapshot(snapshot, START, at(0)), resync.dueAt]).toEqual([undefined, undefined]);
});

test("[RES6] a snapshot of the same log never moves the room back; one of another log does", () => {
  const further = { epoch: 3 as Epoch, seq: 78 as Seq };
  const receive = (reason: ResyncReason, answer: SnapshotAnswer) => {
    const resync = begun(reason);
    resync.takeDue(at(0));
    return resync.receiveSnapshot(answer, further, at(0));
  };
  expect(receive("too-old", snapshot)).toEqual({ position: further, payload: undefined });
  expect(receive("too-old", { kind: "none" })).toEqual({ position: further, payload: undefined });
  expect(receive("other-epoch", snapshot)).toEqual({ position, payload: new Uint8Array([1]) });
  expect(receive("ahead", { kind: "none" })).toEqual({ position: START, payload: undefined });
});

test("[RES7] a deleted room is joined again, because the refusal of the join is what ends it; a repetition waits", () => {
  const resync = begun("other-epoch");
  resync.takeDue(at(0));
  expect(resync.receiveSnapshot({ kind: "deleted" }, position, at(0))).toEqual({ position, payload: undefined });
  resync.begin("too-old", at(0));
  expect(resync.dueAt, "a gateway that still lets the client join is not asked without pause").toBe(at(1_000));
});
