import { expect, test } from "vitest";

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import type { CommittedBatch } from "../../shared/wire/committed-edits.ts";
import { saveMeter } from "./save-meter.ts";

const [ROOM, OTHER] = ["default.plan", "default.notes"] as [RoomKey, RoomKey];
const [ADA, GRACE] = ["AAAAAAAAAAAAAAAA", "GGGGGGGGGGGGGGGG"] as [ClientId, ClientId];
const EPOCH = 5 as Epoch;

const edit = (client: ClientId, counter: number): SubmittedEdit => ({
  author: { user: "ada" as UserId, client },
  counter,
  ackedThrough: 0,
  parentSeq: 0 as Seq,
  payload: new Uint8Array(1),
});
const batch = (client: ClientId, counter: number, count: number): CommittedBatch => ({
  epoch: EPOCH,
  firstSeq: 1 as Seq,
  lastSeq: count as Seq,
  runs: [{ client, counter, seq: 1 as Seq, count }],
  bytes: new Uint8Array(),
});

function meter() {
  const seen: number[] = [];
  const clock = { at: 0, now: () => clock.at as Millis };
  return { seen, clock, hops: saveMeter((seconds) => seen.push(seconds), clock, undefined) };
}

test("[SAVM1] a room's measured edit is observed when the log has it, whatever is committed before and beside it", () => {
  const { seen, clock, hops } = meter();
  hops.received(ROOM, edit(ADA, 3));
  hops.received(OTHER, edit(GRACE, 1));
  clock.at = 40;
  hops.committed(ROOM, batch(ADA, 1, 2));
  hops.committed(ROOM, batch(GRACE, 1, 9));
  expect(seen).toEqual([]);
  hops.committed(ROOM, batch(ADA, 2, 2));
  clock.at = 90;
  hops.committed(ROOM, batch(ADA, 4, 1));
  hops.committed(OTHER, batch(GRACE, 1, 1));
  expect(seen).toEqual([0.04, 0.09]);
});

test("[SAVM2] a refused edit is not observed, and the next one is", () => {
  const { seen, clock, hops } = meter();
  hops.received(ROOM, edit(ADA, 1));
  hops.answered(ROOM, { kind: "refused", epoch: EPOCH, client: ADA, counter: 1, reason: "log-stalled", expected: 1, retryAfterMs: 1 });
  clock.at = 5_000;
  hops.received(ROOM, edit(ADA, 1));
  clock.at = 5_010;
  hops.committed(ROOM, batch(ADA, 1, 1));
  expect(seen).toEqual([0.01]);
});
