import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import type { CatchUpReply, ToOwner } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, Seq } from "../../shared/ids.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import type { ConnectionId } from "../ports.ts";
import { CatchUpQuestions, requestNumbers } from "./catch-up-questions.ts";

const at = (ms: number): Millis => ms as Millis;
const [one, two, three] = [1, 2, 3] as [ConnectionId, ConnectionId, ConnectionId];
const position = (seq: number): Position => ({ epoch: 1 as Epoch, seq: seq as Seq });
const toHead = 0 as Seq;

function part(first: number, last: number): Uint8Array {
  const edits = Array.from({ length: last - first + 1 }, (_, index) => ({
    client: "annannannannann1" as ClientId,
    counter: first + index,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(1),
  }));
  return encoding.encode((out) => writeCommittedEdits(out, { epoch: 1 as Epoch, firstSeq: first as Seq, edits }));
}

function answer(request: number, head: number, parts: Uint8Array[]): CatchUpReply {
  return { kind: "catch-up", request, epoch: 1 as Epoch, head: head as Seq, answer: { kind: "edits", parts } };
}

const asked = (messages: readonly ToOwner[]): unknown[] =>
  messages.map((message) => message.kind === "catch-up-request" && [message.request, message.after.seq, message.through]);

test("[CUP1] members that ask from the same position share a question", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  expect(asked(questions.askForMember(one, position(3), at(0)))).toEqual([[1, 3, 0]]);
  expect(questions.askForMember(two, position(3), at(0))).toEqual([]);
  expect(asked(questions.askForMember(three, position(4), at(0)))).toEqual([[2, 4, 0]]);
  expect(questions.receiveCatchUp(answer(1, 5, [part(4, 5)]), at(1))).toMatchObject({
    asker: { kind: "members", members: new Set([one, two]) },
    isComplete: true,
    position: { seq: 5 },
  });
});

test("[CUP2] a follow-up question is not shared, because its answer depends on earlier ones", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.receiveCatchUp(answer(1, 4, [part(1, 2)]), at(1));
  expect(asked(questions.receiveRead(one, at(1)))).toEqual([[3, 2, 0]]);
  expect(asked(questions.askForMember(two, position(2), at(1)))).toEqual([[4, 2, 0]]);
});

test("[CUP3] parts after a gap in an answer are ignored and asked for again", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  const broken = questions.receiveCatchUp(answer(1, 9, [part(1, 3), part(7, 9)]), at(1))!;
  expect(broken).toMatchObject({ batches: [{ firstSeq: 1 }], isComplete: false });
  expect(asked(questions.receiveRead(one, at(1)))).toEqual([[3, 3, 0]]);
  expect(questions.receiveCatchUp(answer(1, 9, [part(4, 9)]), at(2))).toBeUndefined(); // The old question is closed.
});

test("[CUP4] an answer that ends before the announced head and before the requested seq leads to a follow-up question", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.receiveCatchUp(answer(1, 9, [part(1, 4)]), at(1));
  expect(asked(questions.receiveRead(one, at(1)))).toEqual([[3, 4, 0]]);
  questions.askForReplay(two, position(3), 5 as Seq, at(1));
  expect(questions.receiveCatchUp(answer(4, 9, [part(4, 5)]), at(2))).toMatchObject({ isComplete: true, ask: [] });
});

test("[CUP5] all open questions are asked again with new numbers", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.askForOrder(position(7), toHead, at(0));
  questions.receiveCatchUp(answer(1, 9, [part(1, 4)]), at(1));
  questions.receiveRead(one, at(1));
  expect(asked(questions.askAllAgain(at(2)))).toEqual([
    [5, 7, 0],
    [6, 4, 0],
  ]);
});

test("[CUP6] only one question at a time is asked to close a gap of the room", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  expect(questions.askForOrder(position(7), 9 as Seq, at(0))).toHaveLength(1);
  expect(questions.askForOrder(position(7), toHead, at(0))).toEqual([]);
});

test("[CUP7] an unanswered question is overdue after a limit that doubles with each repetition", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  expect(questions.overdue(1_000, at(999))).toBe("nothing");
  expect(questions.overdue(1_000, at(1_000))).toBe("some");
  questions.askOverdueAgain(1_000, at(1_000));
  expect(questions.overdue(1_000, at(2_999))).toBe("nothing");
  expect(questions.overdue(1_000, at(3_000))).toBe("some");
});

test("[CUP8] a question without waiting members is dropped, a question that other members wait for is not", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.askForMember(two, position(0), at(0));
  questions.forget(one);
  questions.forget(one);
  expect(questions.receiveCatchUp(answer(1, 2, [part(1, 1)]), at(1))).toMatchObject({
    asker: { kind: "members", members: new Set([two]) },
  });
  questions.receiveRead(two, at(1));
  questions.forget(two);
  expect(questions.overdue(1_000, at(9_000))).toBe("nothing");
  expect(questions.receiveCatchUp(answer(3, 2, [part(2, 2)]), at(2))).toMatchObject({
    asker: { kind: "nobody", member: two },
    batches: [],
  });
  expect(questions.open).toBe(0);
});

test("[CUP9] a member has one open question, and its newest other question follows the answer", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  expect(asked(questions.askForReplay(one, position(0), 4 as Seq, at(0)))).toEqual([[1, 0, 4]]);
  for (let again = 0; again < 50; again++) expect(questions.askForReplay(one, position(again), 60 as Seq, at(1))).toEqual([]);
  expect(asked(questions.receiveCatchUp(answer(1, 9, [part(1, 4)]), at(2))!.ask)).toEqual([[2, 49, 60]]);
});

test("[CUP10] repeated joins open no second question, and the first one is dropped if its answer does not arrive", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  for (let again = 0; again < 50; again++) {
    questions.forget(one);
    expect(questions.askForMember(one, position(again % 3), at(1))).toEqual([]);
  }
  expect(questions.open).toBe(1);
  expect(questions.receiveTick(1_000, at(999))).toEqual([]);
  expect(asked(questions.receiveTick(1_000, at(1_000)))).toEqual([[2, 1, 0]]);
});

test("[CUP11] an answer without progress leads to another question after a pause that doubles", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  let [now, request] = [1, 1];
  const pauses = Array.from({ length: 9 }, () => {
    expect(questions.receiveCatchUp(answer(request, 9, [new Uint8Array([255, 255])]), at(now))!.ask).toEqual([]);
    const from = now;
    for (let sent: ToOwner[] = []; sent.length === 0; now += 100) sent = questions.receiveTick(1_000, at(now));
    now -= 100;
    request += 1;
    return now - from;
  });
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 6_400, 6_400]);
});

test("[CUP12] a new owner is asked immediately, and not for members that have left", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.askForMember(two, position(5), at(0));
  questions.receiveCatchUp(answer(1, 9, [new Uint8Array([255])]), at(1));
  questions.forget(two);
  expect(asked(questions.askAllAgain(at(2)))).toEqual([[4, 0, 0]]);
  expect(questions.open).toBe(1);
});

test("[CUP13] an overdue question is repeated with its number, so that a late answer is accepted", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.askForReplay(two, position(3), 9 as Seq, at(0));
  questions.receiveCatchUp(answer(2, 9, [part(4, 5)]), at(0));
  questions.receiveRead(two, at(0));
  expect(asked(questions.askOverdueAgain(1_000, at(1_000)))).toEqual([
    [1, 0, 0],
    [4, 5, 9],
  ]);
  expect(questions.askOverdueAgain(1_000, at(2_999))).toEqual([]);
  expect(questions.receiveCatchUp(answer(1, 2, [part(1, 2)]), at(2_999))).toMatchObject({ batches: [{ firstSeq: 1 }], isComplete: true });
  expect(questions.receiveCatchUp(answer(1, 2, [part(1, 2)]), at(3_000)), "the repeated answer").toBeUndefined();
});

test("[CUP14] a question that was repeated twice counts as fruitless", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  for (const ms of [1_000, 3_000]) {
    expect(questions.overdue(1_000, at(ms))).toBe("some");
    questions.askOverdueAgain(1_000, at(ms));
  }
  expect([questions.overdue(1_000, at(6_999)), questions.overdue(1_000, at(7_000))]).toEqual(["nothing", "fruitless"]);
});

test("[CUP15] a member whose questions made no progress asks again after a pause, and so do others from the same position", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(3), at(0));
  expect(questions.receiveCatchUp(answer(1, 3, []), at(1))).toMatchObject({ isComplete: true, fruitless: 1 });
  expect(questions.askForMember(one, position(3), at(1), 1)).toEqual([]);
  expect(questions.askForMember(two, position(3), at(1), 1)).toEqual([]);
  expect(questions.receiveTick(1_000, at(100))).toEqual([]);
  expect(asked(questions.receiveTick(1_000, at(101)))).toEqual([[2, 3, 0]]);
  expect(questions.receiveCatchUp(answer(2, 3, []), at(102)), "in vain again").toMatchObject({
    asker: { members: new Set([one, two]) },
    fruitless: 2,
  });
  questions.askForMember(one, position(3), at(103));
  expect(questions.receiveCatchUp(answer(3, 4, [part(4, 4)]), at(104))).toMatchObject({ fruitless: 0 });
});

test("[CUP16] a question to a new owner counts as new, however often it was repeated before", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  for (const ms of [0, 0, 0]) questions.askAllAgain(at(ms));
  expect([questions.overdue(1_000, at(999)), questions.overdue(1_000, at(1_000))]).toEqual(["nothing", "some"]);
  expect(questions.askOverdueAgain(1_000, at(1_000))).toHaveLength(1);
  expect(questions.overdue(1_000, at(3_000)), "not in vain yet").toBe("some");
});

test("[CUP17] a follow-up question is held until its member has read the edits, and never overdue or asked again meanwhile", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  expect(questions.receiveCatchUp(answer(1, 9, [part(1, 4)]), at(1))).toMatchObject({ ask: [], reading: [one] });
  expect([questions.overdue(1_000, at(60_000)), questions.askAllAgain(at(60_000)), questions.receiveTick(1_000, at(60_000))]).toEqual([
    "nothing",
    [],
    [],
  ]);
  expect(asked(questions.receiveRead(one, at(60_000)))).toEqual([[3, 4, 0]]);
  expect(questions.receiveRead(one, at(60_000)), "asked already").toEqual([]);
  expect(questions.receiveCatchUp(answer(3, 9, [part(5, 9)]), at(60_001))).toMatchObject({ isComplete: true, reading: [one] });
});

test("[CUP18] members that read the same edits share their next question until it is answered, and a slow one asks later", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  for (const member of [one, two, three]) questions.askForMember(member, position(0), at(0));
  expect(questions.receiveCatchUp(answer(1, 9, [part(1, 4)]), at(1))).toMatchObject({ reading: [one, two, three] });
  expect([one, two].map((member) => asked(questions.receiveRead(member, at(2))))).toEqual([[[3, 4, 0]], []]);
  expect(questions.receiveCatchUp(answer(3, 9, [part(5, 9)]), at(3))).toMatchObject({ asker: { members: new Set([one, two]) } });
  expect(asked(questions.receiveRead(three, at(4)))).toEqual([[4, 4, 0]]);
});

test("[CUP19] the held question of a member that has left is dropped, and a join with the same connection asks at once", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForMember(one, position(0), at(0));
  questions.receiveCatchUp(answer(1, 9, [part(1, 4)]), at(1));
  questions.forget(one);
  expect(questions.open).toBe(0);
  expect(asked(questions.askForMember(one, position(4), at(2)))).toEqual([[3, 4, 0]]);
  expect(questions.receiveRead(one, at(3)), "of the first join").toEqual([]);
});

test("[CUP20] a replay waits for its reader too, and a replay that is requested meanwhile follows it", () => {
  const questions = new CatchUpQuestions("gw" as GatewayId, requestNumbers());
  questions.askForReplay(one, position(0), 9 as Seq, at(0));
  expect(questions.receiveCatchUp(answer(1, 20, [part(1, 4)]), at(1))).toMatchObject({ ask: [], reading: [one] });
  expect(questions.askForReplay(one, position(4), 12 as Seq, at(2))).toEqual([]);
  expect(asked(questions.receiveRead(one, at(3)))).toEqual([[3, 4, 9]]);
  expect(asked(questions.receiveCatchUp(answer(3, 20, [part(5, 9)]), at(4))!.ask)).toEqual([[4, 4, 12]]);
});
