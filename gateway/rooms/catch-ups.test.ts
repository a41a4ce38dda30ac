import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import type { CatchUpAnswer, ToOwner } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, Seq } from "../../shared/ids.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { CatchUps } from "./catch-ups.ts";
import type { ConnectionId } from "../ports.ts";

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

function answer(request: number, head: number, parts: Uint8Array[]): CatchUpAnswer {
  return { kind: "catch-up", request, epoch: 1 as Epoch, head: head as Seq, answer: { kind: "edits", parts } };
}

const asked = (messages: readonly ToOwner[]): unknown[] =>
  messages.map((message) => message.kind === "catch-up-request" && [message.request, message.after.seq, message.through]);

test("[CUP1] members that ask from the same position share a question", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  expect(asked(catchUps.askForMember(one, position(3), at(0)))).toEqual([[1, 3, 0]]);
  expect(catchUps.askForMember(two, position(3), at(0))).toEqual([]);
  expect(asked(catchUps.askForMember(three, position(4), at(0)))).toEqual([[2, 4, 0]]);
  expect(catchUps.receive(answer(1, 5, [part(4, 5)]), at(1))).toMatchObject({
    asker: { kind: "members", members: new Set([one, two]) },
    isWhole: true,
    position: { seq: 5 },
  });
});

test("[CUP2] a question that asks on is not shared: what its owner says counts what was read before", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  expect(asked(catchUps.receive(answer(1, 4, [part(1, 2)]), at(1))!.ask)).toEqual([[2, 2, 0]]);
  expect(asked(catchUps.askForMember(two, position(2), at(1)))).toEqual([[3, 2, 0]]);
});

test("[CUP3] what follows a hole in an answer is not taken, and is asked for again from the hole on", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  const broken = catchUps.receive(answer(1, 9, [part(1, 3), part(7, 9)]), at(1))!;
  expect(broken).toMatchObject({ batches: [{ firstSeq: 1 }], isWhole: false });
  expect(asked(broken.ask)).toEqual([[2, 3, 0]]);
  expect(catchUps.receive(answer(1, 9, [part(4, 9)]), at(2))).toBeUndefined(); // The old question is closed.
});

test("[CUP4] an answer that ends short of the head it tells, and of what was asked for, is asked on for", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  expect(asked(catchUps.receive(answer(1, 9, [part(1, 4)]), at(1))!.ask)).toEqual([[2, 4, 0]]);
  catchUps.askForReplay(two, position(3), 5 as Seq, at(1));
  expect(catchUps.receive(answer(3, 9, [part(4, 5)]), at(2))).toMatchObject({ isWhole: true, ask: [] });
});

test("[CUP5] everything open is asked again, under new numbers", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.askForOrder(position(7), toHead, at(0));
  catchUps.receive(answer(1, 9, [part(1, 4)]), at(1));
  expect(asked(catchUps.askAllAgain(at(2)))).toEqual([
    [4, 7, 0],
    [5, 4, 0],
  ]);
});

test("[CUP6] one question at a time is asked for the order's sake", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  expect(catchUps.askForOrder(position(7), 9 as Seq, at(0))).toHaveLength(1);
  expect(catchUps.askForOrder(position(7), toHead, at(0))).toEqual([]);
});

test("[CUP7] a question is overdue once unanswered for so long, doubled when it was asked again", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  expect(catchUps.overdue(1_000, at(999))).toBe("nothing");
  expect(catchUps.overdue(1_000, at(1_000))).toBe("some");
  catchUps.askOverdueAgain(1_000, at(1_000));
  expect(catchUps.overdue(1_000, at(2_999))).toBe("nothing");
  expect(catchUps.overdue(1_000, at(3_000))).toBe("some");
});

test("[CUP8] a question nobody waits for is dropped, one that others wait for is not", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.askForMember(two, position(0), at(0));
  catchUps.forget(one);
  catchUps.forget(one);
  expect(catchUps.receive(answer(1, 2, [part(1, 1)]), at(1))).toMatchObject({ asker: { kind: "members", members: new Set([two]) } });
  catchUps.forget(two);
  expect(catchUps.overdue(1_000, at(9_000))).toBe("nothing");
  expect(catchUps.receive(answer(2, 2, [part(2, 2)]), at(2))).toMatchObject({ asker: { kind: "nobody", member: two }, batches: [] });
  expect(catchUps.open).toBe(0);
});

test("[CUP9] a member has one question open: what it asks meanwhile is asked once that is answered, and only the newest of it", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  expect(asked(catchUps.askForReplay(one, position(0), 4 as Seq, at(0)))).toEqual([[1, 0, 4]]);
  for (let again = 0; again < 50; again++) expect(catchUps.askForReplay(one, position(again), 60 as Seq, at(1))).toEqual([]);
  expect(asked(catchUps.receive(answer(1, 9, [part(1, 4)]), at(2))!.ask)).toEqual([[2, 49, 60]]);
});

test("[CUP10] joining again and again opens no second question: the first one's answer is awaited, for nobody, and not for long if it stays away", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  for (let again = 0; again < 50; again++) {
    catchUps.forget(one);
    expect(catchUps.askForMember(one, position(again % 3), at(1))).toEqual([]);
  }
  expect(catchUps.open).toBe(1);
  expect(catchUps.receiveTick(1_000, at(999))).toEqual([]);
  expect(asked(catchUps.receiveTick(1_000, at(1_000)))).toEqual([[2, 1, 0]]);
});

test("[CUP11] an answer that brings nothing, such as one that does not decode, is asked for again after a pause that doubles", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  let [now, request] = [1, 1];
  const pauses = Array.from({ length: 9 }, () => {
    expect(catchUps.receive(answer(request, 9, [new Uint8Array([255, 255])]), at(now))!.ask).toEqual([]);
    const from = now;
    for (let sent: ToOwner[] = []; sent.length === 0; now += 100) sent = catchUps.receiveTick(1_000, at(now));
    now -= 100;
    request += 1;
    return now - from;
  });
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 6_400, 6_400]);
});

test("[CUP12] a new owner is asked at once, and not for those who have gone", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.askForMember(two, position(5), at(0));
  catchUps.receive(answer(1, 9, [new Uint8Array([255])]), at(1));
  catchUps.forget(two);
  expect(asked(catchUps.askAllAgain(at(2)))).toEqual([[4, 0, 0]]);
  expect(catchUps.open).toBe(1);
});

test("[CUP13] what is overdue is asked again under its number, so that an answer which is only late is taken", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.askForReplay(two, position(3), 9 as Seq, at(0));
  catchUps.receive(answer(2, 9, [part(4, 5)]), at(0));
  expect(asked(catchUps.askOverdueAgain(1_000, at(1_000)))).toEqual([
    [1, 0, 0],
    [3, 5, 9],
  ]);
  expect(catchUps.askOverdueAgain(1_000, at(2_999))).toEqual([]);
  expect(catchUps.receive(answer(1, 2, [part(1, 2)]), at(2_999))).toMatchObject({ batches: [{ firstSeq: 1 }], isWhole: true });
  expect(catchUps.receive(answer(1, 2, [part(1, 2)]), at(3_000)), "what it was asked for again").toBeUndefined();
});

test("[CUP14] what was asked again twice is open in vain", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  for (const ms of [1_000, 3_000]) {
    expect(catchUps.overdue(1_000, at(ms))).toBe("some");
    catchUps.askOverdueAgain(1_000, at(ms));
  }
  expect([catchUps.overdue(1_000, at(6_999)), catchUps.overdue(1_000, at(7_000))]).toEqual(["nothing", "in-vain"]);
});

test("[CUP15] who asks on from where questions in a row brought it no further does so after a pause, which whoever asks from there shares", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(3), at(0));
  expect(catchUps.receive(answer(1, 3, []), at(1))).toMatchObject({ isWhole: true, inVain: 1 });
  expect(catchUps.askForMember(one, position(3), at(1), 1)).toEqual([]);
  expect(catchUps.askForMember(two, position(3), at(1), 1)).toEqual([]);
  expect(catchUps.receiveTick(1_000, at(100))).toEqual([]);
  expect(asked(catchUps.receiveTick(1_000, at(101)))).toEqual([[2, 3, 0]]);
  expect(catchUps.receive(answer(2, 3, []), at(102)), "in vain again").toMatchObject({
    asker: { members: new Set([one, two]) },
    inVain: 2,
  });
  catchUps.askForMember(one, position(3), at(103));
  expect(catchUps.receive(answer(3, 4, [part(4, 4)]), at(104))).toMatchObject({ inVain: 0 });
});

test("[CUP16] what is asked anew of whoever has the room is asked there for the first time, however often it was asked before", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  for (const ms of [0, 0, 0]) catchUps.askAllAgain(at(ms));
  expect([catchUps.overdue(1_000, at(999)), catchUps.overdue(1_000, at(1_000))]).toEqual(["nothing", "some"]);
  expect(catchUps.askOverdueAgain(1_000, at(1_000))).toHaveLength(1);
  expect(catchUps.overdue(1_000, at(3_000)), "not in vain yet").toBe("some");
});
