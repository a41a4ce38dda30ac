import { expect, test } from "vitest";

import { ONLY_EDIT_COUNTER_MIN, type SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import { Intake, type IntakeResult, GroupCommit } from "./intake.ts";
import { Sequencer } from "./sequencer.ts";

const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const OPTIONS = {
  unackedEditsMax: 2,
  unackedBytesMax: 1_000,
  recordBytesMax: 100,
  refusedRetryMs: 1_000,
  gapQuietMs: 200,
  dedupeMsMin: 300_000,
  writersMax: 10,
  runsPerWriterMax: 8,
};
const SAVED = { epoch: 3 as Epoch, saving: "saved" as const };
const edit = (counter: number, bytes = 1): SubmittedEdit => ({
  author: ann,
  counter,
  ackedThrough: 0,
  parentSeq: 0 as Seq,
  payload: new Uint8Array(bytes),
});
const at = (ms: number) => ms as Millis;

function intake(isGenuine = true) {
  const sequencer = new Sequencer(OPTIONS, 0 as Seq);
  const unacked = new GroupCommit(OPTIONS);
  const of = new Intake(
    "acme.notes" as RoomKey,
    { sequencer, unacked, seal: { sealOf: () => new Uint8Array(16), isGenuine: () => isGenuine } },
    OPTIONS,
  );
  return { intake: of, sequencer, unacked };
}
const answerOf = (taken: IntakeResult) => ("answer" in taken ? taken.answer : undefined);

test("[INT1] edits are accepted in their writer's order; a waiting repeat is skipped, and a gap is reported to the writer once", () => {
  const { intake: of } = intake();
  expect(of.receiveEdit(edit(1), SAVED, at(0)).kind).toBe("accepted");
  expect(of.receiveEdit(edit(1), SAVED, at(0)).kind).toBe("passed-over");
  expect(answerOf(of.receiveEdit(edit(5), SAVED, at(0)))).toMatchObject({ kind: "refused", reason: "gap", expected: 2, epoch: 3 });
  expect(of.receiveEdit(edit(6), SAVED, at(100)).kind).toBe("passed-over");
  expect(of.receiveEdit(edit(6), SAVED, at(200)).kind).toBe("answered");
});

test("[INT7] a gap after an accepted edit is a new one and reported at once", () => {
  const { intake: of } = intake();
  expect(of.receiveEdit(edit(2), SAVED, at(0)).kind).toBe("answered");
  expect(of.receiveEdit(edit(1), SAVED, at(1)).kind).toBe("accepted");
  expect(answerOf(of.receiveEdit(edit(3), SAVED, at(2)))).toMatchObject({ reason: "gap", expected: 2 });
});

test("[INT2] an edit that the log contains is answered with its seq", () => {
  const { intake: of, sequencer } = intake();
  sequencer.commit(
    { epoch: 3 as Epoch, firstSeq: 1 as Seq, edits: [{ client: ann.client, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }] },
    at(0),
  );
  expect(answerOf(of.receiveEdit(edit(1), SAVED, at(0)))).toMatchObject({ kind: "acked", seq: 1, exact: true });
});

test("[INT6] another body under the key of a write over HTTP is answered once the log has the first, and such a write is never shown as tentative", () => {
  const { intake: of, sequencer } = intake();
  const taken = of.receiveEdit(edit(ONLY_EDIT_COUNTER_MIN), SAVED, at(0));
  expect(taken).toMatchObject({ kind: "accepted", edit: { shown: "never" } });
  expect(of.receiveEdit(edit(1), SAVED, at(0)).kind).not.toBe("accepted");
  expect(of.receiveEdit(edit(ONLY_EDIT_COUNTER_MIN + 1), SAVED, at(0)), "the log may not get the first").toEqual({ kind: "passed-over" });
  const { client } = ann;
  const stored = { client, counter: ONLY_EDIT_COUNTER_MIN, parentSeq: 0 as Seq, payload: new Uint8Array(1) };
  sequencer.commit({ epoch: 3 as Epoch, firstSeq: 1 as Seq, edits: [stored] }, at(0));
  expect(answerOf(of.receiveEdit(edit(ONLY_EDIT_COUNTER_MIN + 1), SAVED, at(0)))).toEqual({
    kind: "key-reused",
    epoch: 3,
    client,
    counter: ONLY_EDIT_COUNTER_MIN + 1,
  });
});

test("[INT3] an edit is refused with the reason if the room is full, the log is stalled, or the edit could never fit", () => {
  const { intake: of } = intake();
  expect(answerOf(of.receiveEdit(edit(1, 101), SAVED, at(0)))).toMatchObject({ reason: "too-large", retryAfterMs: 0 });
  expect(of.receiveEdit(edit(2), SAVED, at(199)).kind, "edits sent before the refusal arrived").toBe("passed-over");
  expect(answerOf(of.receiveEdit(edit(2), SAVED, at(200)))).toMatchObject({ reason: "gap", expected: 1 });
  expect(answerOf(of.receiveEdit(edit(1), { ...SAVED, saving: "refusing" }, at(0)))).toMatchObject({
    reason: "log-stalled",
    retryAfterMs: 1_000,
  });
  for (const counter of [1, 2]) expect(of.receiveEdit(edit(counter, 100), SAVED, at(0)).kind, "as large as a record").toBe("accepted");
  const full = of.receiveEdit(edit(3), SAVED, at(0));
  expect(full.kind).toBe("full");
  expect(answerOf(full)).toMatchObject({ reason: "write-backpressure", expected: 3 });
});

test("[INT4] an edit submitted by another client is accepted only with a room server's seal", () => {
  const tentative = {
    ...ann,
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(1),
    epoch: 2 as Epoch,
    mac: new Uint8Array(16),
  };
  expect(intake().intake.receiveResubmit(tentative, SAVED, at(0)).kind).toBe("accepted");
  expect(answerOf(intake(false).intake.receiveResubmit(tentative, SAVED, at(0)))).toMatchObject({ kind: "refused", reason: "forged" });
});

test("[INT5] a first edit is accepted once, if no edit exists or waits; its repeat is answered, and it is never shown before the log has it", () => {
  const { intake: of, sequencer, unacked } = intake();
  const bob = { ...edit(1), author: { user: "bob" as UserId, client: "bobbobbobbobbob1" as ClientId } };
  expect(of.receiveFirstEdit(edit(1), SAVED, at(0))).toMatchObject({ kind: "accepted", edit: { shown: "never" } });
  expect(of.receiveFirstEdit(edit(1), SAVED, at(0)).kind, "its own repeat").toBe("passed-over");
  expect(of.receiveFirstEdit(bob, SAVED, at(0)).kind, "until the outcome of the other is known").toBe("passed-over");
  unacked.takeNext(at(0));
  unacked.settle();
  sequencer.commit(
    { epoch: 3 as Epoch, firstSeq: 1 as Seq, edits: [{ client: ann.client, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }] },
    at(0),
  );
  expect(answerOf(of.receiveFirstEdit(edit(1), SAVED, at(0)))).toMatchObject({ kind: "acked", seq: 1, exact: true });
  expect(answerOf(of.receiveFirstEdit(bob, SAVED, at(0)))).toEqual({ kind: "not-first", epoch: 3, client: bob.author.client, counter: 1 });
});
