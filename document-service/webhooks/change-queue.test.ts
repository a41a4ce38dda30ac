import { expect, test } from "vitest";

import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { webhookEndpoints } from "../../shared/settings/webhook-endpoints.ts";
import { ChangeQueue, type ChangeQueueEffect, type ChangeQueueInput, PendingChange } from "./change-queue.ts";

const at = (ms: number) => ms as Millis;
const position = (seq: number) => ({ epoch: 2 as Epoch, seq: seq as Seq });
const start = () => new PendingChange({ webhookQuietMs: 100, webhookChangeMsMax: 1_000 });

test("[CHN1] edits typed without a pause are announced as one change, after a quiet time", () => {
  const pending = start();
  for (const [ms, seq] of [
    [0, 1],
    [50, 3],
    [140, 4],
  ] as const)
    pending.receiveEdits(position(seq), seq === 3 ? 2 : 1, at(ms));
  expect([pending.isDue(at(239)), pending.isDue(at(240))]).toEqual([false, true]);
  expect(pending.take()).toEqual({ epoch: 2, seq: 4, edits: 4 });
  expect([pending.isPending, pending.isDue(at(10_000)), pending.take()]).toEqual([false, false, undefined]);
});

test("[CHN2] a room that is never quiet is announced after the maximum time", () => {
  const pending = start();
  for (let ms = 0; ms <= 950; ms += 50) pending.receiveEdits(position(ms + 1), 1, at(ms));
  expect([pending.isDue(at(999)), pending.isDue(at(1_000))]).toEqual([false, true]);
});

test("[CHN3] a change that could not be announced is announced together with later edits", () => {
  const pending = start();
  pending.receiveEdits(position(1), 1, at(0));
  const taken = pending.take()!;
  pending.receiveEdits(position(5), 4, at(10));
  pending.putBack(taken, at(20));
  expect(pending.take()).toEqual({ epoch: 2, seq: 5, edits: 5 });
  pending.putBack(taken, at(30));
  expect(pending.take()).toEqual(taken);
});

test("[CHN10] a change that could not be announced waits for a quiet time, also after the maximum time", () => {
  const pending = start();
  pending.receiveEdits(position(1), 1, at(0));
  pending.putBack(pending.take()!, at(5_000));
  expect([pending.isDue(at(5_099)), pending.isDue(at(5_100))]).toEqual([false, true]);
  pending.receiveEdits(position(2), 1, at(5_090));
  expect(pending.isDue(at(5_100)), "further edits do not delay it").toBe(true);
});

const ROOM = "acme.notes" as RoomKey;
const CAUSE = new Error("NATS is away");
const edits = (seq: number): ChangeQueueInput => ({ kind: "edits", room: ROOM, position: position(seq), edits: 1 });
const queuePending = (call: number): ChangeQueueInput => ({ kind: "queue-pending", room: ROOM, call });
const TICK: ChangeQueueInput = { kind: "tick" };
const added = (add: number): ChangeQueueInput => ({ kind: "added", add });
const addFailed = (add: number): ChangeQueueInput => ({ kind: "add-failed", add, cause: CAUSE });
const place = { tenant: "acme", room: "notes", at: 7 };
const changed = (add: number, seq: number, count: number): ChangeQueueEffect => ({
  kind: "add",
  add,
  id: `changed-acme/notes-2-${seq}`,
  event: { type: "document.changed", ...place, epoch: 2, seq, edits: count },
});

/** Returns the effects of the last input, which arrives at the time. */
function queueOf(urls = "https://a.example/"): (ms: number, ...inputs: readonly ChangeQueueInput[]) => ChangeQueueEffect[] {
  const queue = new ChangeQueue({ webhookQuietMs: 100, webhookChangeMsMax: 1_000, webhookUrls: webhookEndpoints(urls) });
  return (ms, ...inputs) => inputs.map((input) => queue.receive(input, { now: at(ms), date: 7 as UnixMillis })).at(-1) ?? [];
}

test("[CHN4] a due change is added once, and a tick while it is on its way adds nothing", () => {
  const receive = queueOf();
  receive(0, edits(1));
  expect([receive(99, TICK), receive(100, TICK)]).toEqual([[], [changed(1, 1, 1)]]);
  receive(110, edits(2));
  expect([receive(500, TICK), receive(500, added(1)), receive(500, TICK)]).toEqual([[], [], [changed(2, 2, 1)]]);
});

test("[CHN5] a call waits for the change that is on its way, and adds what is pending after it", () => {
  const receive = queueOf();
  expect(receive(0, queuePending(1))).toEqual([{ kind: "settled", call: 1 }]);
  receive(0, edits(1));
  expect(receive(0, queuePending(2))).toEqual([changed(1, 1, 1)]);
  receive(0, edits(2));
  expect(receive(0, queuePending(3))).toEqual([]);
  expect(receive(0, added(1))).toEqual([{ kind: "settled", call: 2 }, changed(2, 2, 1)]);
  expect(receive(0, addFailed(2))).toEqual([{ kind: "rejected", call: 3, cause: CAUSE }]);
  expect(receive(0, queuePending(4))).toEqual([changed(3, 2, 1)]);
});

test("[CHN6] a change that could not be added is added with later edits once it is due again", () => {
  const receive = queueOf();
  receive(0, edits(1));
  receive(100, TICK);
  expect(receive(150, addFailed(1))).toEqual([{ kind: "warn", of: "change", room: ROOM, cause: CAUSE }]);
  expect([receive(249, TICK), receive(250, edits(2), TICK), receive(350, TICK)]).toEqual([[], [], [changed(2, 2, 2)]]);
});

test("[CHN7] a save does not wait for a snapshot event that cannot be added; a deletion whose event cannot be added is rejected", () => {
  const receive = queueOf();
  const snapshot = receive(0, { kind: "snapshot", room: ROOM, position: position(3), bytes: 9, call: 1 });
  expect(snapshot).toMatchObject([{ kind: "add", id: `snapshot-acme/notes-2-3`, event: { type: "document.snapshot", seq: 3, bytes: 9 } }]);
  expect(receive(0, addFailed(1))).toEqual([
    { kind: "warn", of: "snapshot", room: ROOM, cause: CAUSE },
    { kind: "settled", call: 1 },
  ]);
  expect(receive(0, { kind: "deleted", room: ROOM, call: 2 })).toMatchObject([{ kind: "add", id: "deleted-acme/notes" }]);
  expect(receive(0, addFailed(2))).toEqual([{ kind: "rejected", call: 2, cause: CAUSE }]);
});

test("[CHN8] neither a deleted room's pending change nor an event that no endpoint wants is announced", () => {
  const receive = queueOf();
  receive(0, edits(1), { kind: "deleted", room: ROOM, call: 1 });
  expect([receive(500, TICK), receive(500, queuePending(2))]).toEqual([[], [{ kind: "settled", call: 2 }]]);
  const unwanted = queueOf("other=https://a.example/");
  unwanted(0, edits(1));
  expect([unwanted(500, TICK), unwanted(500, { kind: "deleted", room: ROOM, call: 3 })]).toEqual([[], [{ kind: "settled", call: 3 }]]);
});

test("[CHN9] the id of an event has no full stop, which separates the signed parts of a webhook, and rooms never share an id", () => {
  const idsOf = (room: RoomKey): string[] => {
    const receive = queueOf();
    const inputs: readonly ChangeQueueInput[] = [
      { kind: "snapshot", room, position: position(4), bytes: 1, call: 1 },
      { kind: "deleted", room, call: 2 },
    ];
    const effects = [
      ...receive(0, { ...edits(4), room } as ChangeQueueInput, { kind: "queue-pending", room, call: 3 }),
      ...inputs.flatMap((input) => receive(0, input)),
    ];
    return effects.flatMap((effect) => (effect.kind === "add" ? effect.id : []));
  };
  const ids = ["acme.notes", "acme-notes.2", "acme.notes-2", "acme.notes-2-4", "acme.=2fnotes"].flatMap((room) => idsOf(room as RoomKey));
  expect(ids).toHaveLength(15);
  expect(new Set(ids).size).toBe(15);
  expect(ids.filter((id) => id.includes("."))).toEqual([]);
});
