import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import type { CatchUpAnswer, ToOwner } from "../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, Seq } from "../shared/ids.ts";
import { writeCommittedEdits } from "../shared/wire/committed-edits.ts";
import { CatchUps } from "./catch-ups.ts";
import type { ConnectionId } from "./ports.ts";

const at = (ms: number): Millis => ms as Millis;
const [one, two] = [1, 2] as [ConnectionId, ConnectionId];
const position = (seq: number): Position => ({ epoch: 1 as Epoch, seq: seq as Seq });
const toHead = 0 as Seq;

function part(first: number, last: number): Uint8Array {
  const edits = Array.from({ length: last - first + 1 }, (_, index) => ({ client: "annannannannann1" as ClientId, counter: first + index, parentSeq: 0 as Seq, payload: new Uint8Array(1) }));
  return encoding.encode((out) => writeCommittedEdits(out, { epoch: 1 as Epoch, firstSeq: first as Seq, edits }));
}

function answer(request: number, head: number, parts: Uint8Array[], last = true): CatchUpAnswer {
  return { kind: "catch-up", request, epoch: 1 as Epoch, head: head as Seq, answer: { kind: "edits", parts, last } };
}

const asked = (messages: readonly ToOwner[]): unknown[] => messages.map((message) => message.kind === "catch-up-request" && [message.request, message.after.seq, message.through]);

test("[CUP1] members that ask from the same position share a question", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  expect(asked(catchUps.askForMember(one, position(3), at(0)))).toEqual([[1, 3, 0]]);
  expect(catchUps.askForMember(two, position(3), at(0))).toEqual([]);
  expect(asked(catchUps.askForMember(two, position(4), at(0)))).toEqual([[2, 4, 0]]);
  expect(catchUps.receive(answer(1, 5, [part(4, 5)]), at(1))).toMatchObject({ asker: { kind: "members", members: new Set([one, two]) }, done: true, position: { seq: 5 } });
});

test("[CUP2] a question whose answer has begun is not shared any more", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.receive(answer(1, 4, [part(1, 2)], false), at(1));
  expect(asked(catchUps.askForMember(two, position(0), at(1)))).toEqual([[2, 0, 0]]);
});

test("[CUP3] what follows a hole in an answer is not taken, and is asked for again from the hole on", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  expect(catchUps.receive(answer(1, 9, [part(1, 3)], false), at(1))).toMatchObject({ batches: [{ firstSeq: 1 }], done: false, again: [] });
  const broken = catchUps.receive(answer(1, 9, [part(7, 9)]), at(2))!;
  expect(broken).toMatchObject({ batches: [], done: false });
  expect(asked(broken.again)).toEqual([[2, 3, 0]]);
  expect(catchUps.receive(answer(1, 9, [part(4, 9)]), at(3))).toBeUndefined(); // The old question is closed.
});

test("[CUP4] an answer that ends short of the head it tells has lost a message", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  expect(asked(catchUps.receive(answer(1, 9, []), at(1))!.again)).toEqual([[2, 0, 0]]);
  catchUps.askForReplay(two, position(3), 5 as Seq, at(1));
  expect(catchUps.receive(answer(3, 9, [part(4, 5)]), at(2))).toMatchObject({ done: true, again: [] });
});

test("[CUP5] everything open is asked again from where its answer broke off", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.askForOrder(position(7), toHead, at(0));
  catchUps.receive(answer(1, 9, [part(1, 4)], false), at(1));
  expect(asked(catchUps.askAllAgain(at(2)))).toEqual([[3, 4, 0], [4, 7, 0]]);
});

test("[CUP6] one question at a time is asked for the order's sake", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  expect(catchUps.askForOrder(position(7), 9 as Seq, at(0))).toHaveLength(1);
  expect(catchUps.askForOrder(position(7), toHead, at(0))).toEqual([]);
});

test("[CUP7] a question is overdue once unanswered for so long, doubled when it was asked again", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  expect(catchUps.overdue(1_000, at(999))).toBe(false);
  expect(catchUps.overdue(1_000, at(1_000))).toBe(true);
  catchUps.askAllAgain(at(1_000));
  expect(catchUps.overdue(1_000, at(2_999))).toBe(false);
  expect(catchUps.overdue(1_000, at(3_000))).toBe(true);
});

test("[CUP8] a question nobody waits for is dropped, one that others wait for is not", () => {
  const catchUps = new CatchUps("gw" as GatewayId);
  catchUps.askForMember(one, position(0), at(0));
  catchUps.askForMember(two, position(0), at(0));
  catchUps.forget(one);
  expect(catchUps.open).toBe(1);
  catchUps.forget(two);
  expect(catchUps.open).toBe(0);
});
