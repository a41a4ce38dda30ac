import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import {
  type ClientId,
  type Epoch,
  type Millis,
  type RoomKey,
  type Seq,
  tenantOf,
  type UnixMillis,
  type UserId,
} from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import { UsageMeter } from "../usage/usage-meter.ts";
import { WritesHost } from "./writes-host.ts";

const ROOM = "acme.notes" as RoomKey;
const editOf = (client: string, counter = 1): SubmittedEdit => ({
  author: { user: "backend" as UserId, client: client as ClientId },
  counter,
  ackedThrough: 0,
  parentSeq: 0 as Seq,
  payload: new Uint8Array(1),
});

function start(options: { writesMax?: number } = {}) {
  const timers = new Set<() => void>();
  const clock: Clock = {
    now: () => 0 as Millis,
    wallNow: () => 0 as UnixMillis,
    after: (_, run) => (timers.add(run), () => void timers.delete(run)),
  };
  const sent: string[] = [];
  const usage = new UsageMeter({ tenantsMax: 10 });
  const writes = new WritesHost(
    { writesMax: 10, writeMsMax: 1_000, ...options },
    (room, edit) => void sent.push(`${room} ${edit.author.client}`),
    { clock, metrics: gatewayMetrics(new Registry()), usage },
  );
  return { writes, sent, timers, usage };
}

const committed = (client: string, seq: number) => ({
  epoch: 2 as Epoch,
  firstSeq: seq as Seq,
  lastSeq: seq as Seq,
  runs: [{ client: client as ClientId, counter: 1, seq: seq as Seq, count: 1 }],
  bytes: new Uint8Array(),
});

test("[WRI1] a write waits for its seq, and two callers with the same edit receive the same answer", async () => {
  const { writes, sent, timers } = start();
  const both = [writes.write(ROOM, editOf("a")), writes.write(ROOM, editOf("a"))];
  writes.receiveCommitted(ROOM, committed("b", 4));
  writes.receiveCommitted("acme.other" as RoomKey, committed("a", 5));
  writes.receiveCommitted(ROOM, committed("a", 6));
  expect(await Promise.all(both)).toEqual(Array.from({ length: 2 }, () => ({ kind: "committed", epoch: 2, seq: 6 })));
  expect([sent, timers.size]).toEqual([[`${ROOM} a`, `${ROOM} a`], 0]);
});

test("[WRI2] the owner's answer settles a write: the log has the edit already, or the reason for a refusal", async () => {
  const { writes } = start();
  const [a, b] = [writes.write(ROOM, editOf("a")), writes.write(ROOM, editOf("b"))];
  writes.settle(ROOM, "a" as ClientId, 1, { kind: "committed", epoch: 3 as Epoch, seq: 1 as Seq });
  writes.settle(ROOM, "b" as ClientId, 1, { kind: "refused", reason: "log-stalled", retryAfterMs: 700 });
  expect(await Promise.all([a, b])).toEqual([
    { kind: "committed", epoch: 3, seq: 1 },
    { kind: "refused", reason: "log-stalled", retryAfterMs: 700 },
  ]);
});

test("[WRI3] a write without an answer in time ends as unanswered, and a later answer is ignored", async () => {
  const { writes, timers } = start();
  const late = writes.write(ROOM, editOf("a"));
  for (const run of timers) run();
  expect(await late).toEqual({ kind: "unanswered" });
  writes.receiveCommitted(ROOM, committed("a", 6));
});

test("[WRI4] a write beyond the limit is refused before it is sent, and a room that may not open refuses all waiting writes", async () => {
  const { writes, sent } = start({ writesMax: 1 });
  const first = writes.write(ROOM, editOf("a"));
  expect(await writes.write(ROOM, editOf("b"))).toMatchObject({ kind: "refused", reason: "too-many-writes" });
  writes.refuseRoom(ROOM, "tenant-rooms");
  expect(await first).toMatchObject({ kind: "refused", reason: "tenant-rooms" });
  expect(sent).toEqual([`${ROOM} a`]);
});

test("[WRI5] while a write waits, a different write with the same key is asked to try again; a write whose key another gateway used first is refused", async () => {
  const { writes, sent } = start();
  const first = writes.write(ROOM, editOf("a", 7));
  expect(await writes.write(ROOM, editOf("a", 8))).toEqual({ kind: "refused", reason: "key-waiting", retryAfterMs: 1_000 });
  expect(sent).toEqual([`${ROOM} a`]);
  writes.settle(ROOM, "a" as ClientId, 9, { kind: "committed", epoch: 3 as Epoch, seq: 1 as Seq });
  writes.receiveCommitted(ROOM, committed("a", 6)); // The committed edit has counter 1.
  expect(await first).toMatchObject({ kind: "refused", reason: "key-reused" });
});

test("[WRI6] a stored edit over HTTP counts for its tenant once, with its bytes", () => {
  const { writes, usage } = start();
  const edit = editOf("client-1");
  void writes.write(ROOM, edit);
  void writes.write(ROOM, edit);
  const counts = (): (number | undefined)[] => {
    const counted = usage.takeCounts(0 as Millis).get(tenantOf(ROOM));
    return [counted?.edits, counted?.editBytes];
  };
  writes.receiveCommitted(ROOM, committed("another client", 1));
  expect(counts()).toEqual([undefined, undefined]);
  writes.receiveCommitted(ROOM, committed("client-1", 2));
  expect(counts()).toEqual([1, edit.payload.byteLength]);
  writes.receiveCommitted(ROOM, committed("client-1", 2));
  expect(counts(), "a repeated record").toEqual([undefined, undefined]);
});
