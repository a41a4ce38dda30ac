import { expect, test } from "vitest";

import type { Millis, Seq } from "../shared/ids.ts";
import { EditLedger } from "./edit-ledger.ts";
import type { Finding } from "./findings.ts";

const at = (ms: number): Millis => ms as Millis;
const seq = (value: number): Seq => value as Seq;

/** A room in which participant 0 writes and the others observe, all present from time 0. */
function begin(onlookers = 1, editsMax = 10) {
  const ledger = new EditLedger({ lateMs: 1_000, editsMax });
  for (let participant = 0; participant <= onlookers; participant++) ledger.receiveCame(participant, at(0));
  const found = (find: (findings: Finding[]) => void): Finding[] => {
    const findings: Finding[] = [];
    find(findings);
    return findings;
  };
  const write = (now: number): number => {
    let number = 0;
    found((findings) => (number = ledger.write(0, at(now), findings)));
    return number;
  };
  const delivered = (participant: number, position: number, number: number | undefined, now: number): Finding[] =>
    found((findings) => ledger.receiveDelivered(participant, seq(position), number, at(now), findings));
  const ticked = (now: number): Finding[] => found((findings) => ledger.tick(at(now), findings));
  return { ledger, found, write, delivered, ticked };
}

test("[PED2] the ledger measures how long an edit took to be acknowledged, and to reach each other participant", () => {
  const { ledger, write, delivered } = begin(2);
  const edit = write(10);
  expect(delivered(1, 1, edit, 14)).toEqual([{ kind: "edit-arrived", ms: 4 }]);
  expect(delivered(0, 1, edit, 15)).toEqual([{ kind: "edit-acknowledged", ms: 5 }]);
  expect(ledger.oldestAt, "one has still to see it").toBe(10);
  expect(delivered(2, 1, edit, 17)).toEqual([{ kind: "edit-arrived", ms: 7 }]);
  expect(delivered(2, 1, edit, 18), "delivered twice").toEqual([]);
  expect(ledger.oldestAt).toBeUndefined();
});

test("[PED1] a participant that has a later edit, and not this one, has lost it", () => {
  const { ledger, write, delivered } = begin(2);
  const [first, second] = [write(0), write(1)];
  expect(delivered(2, 2, second, 5)).toEqual([{ kind: "edit-arrived", ms: 4 }]);
  expect(delivered(1, 1, first, 6), "only now is it known where the first stands").toEqual([
    { kind: "edit-arrived", ms: 6 },
    { kind: "edit-lost" },
  ]);
  delivered(0, 1, first, 7);
  delivered(0, 2, second, 7);
  expect(delivered(1, 3, undefined, 8), "somebody else's edit passes the second as well").toEqual([{ kind: "edit-lost" }]);
  expect(ledger.oldestAt).toBeUndefined();
});

test("[PED1] an outage of any length loses nothing, and waiting edits are reported by their age", () => {
  const { ledger, write, delivered, ticked } = begin();
  const edit = write(0);
  expect(ticked(3_600_000)).toEqual([]);
  expect(ledger.oldestAt).toBe(0);
  delivered(0, 1, edit, 3_600_000);
  expect(delivered(1, 1, edit, 3_600_001)).toEqual([{ kind: "edit-arrived", ms: 3_600_001 }]);
});

test("[PED2] an edit that reaches an absent participant counts neither as delivered in time nor as lost", () => {
  const { ledger, write, delivered } = begin();
  const before = write(0);
  ledger.receiveWent(1);
  const meanwhile = write(5);
  ledger.receiveCame(1, at(900));
  const after = write(901);
  expect([before, meanwhile, after].map((edit, index) => delivered(1, index + 1, edit, 903))).toEqual([
    [],
    [],
    [{ kind: "edit-arrived", ms: 2 }],
  ]);
});

test("[PED2] an edit that its writer made without a connection is not measured", () => {
  const { ledger, write, delivered } = begin();
  const before = write(0);
  ledger.receiveWent(0);
  const meanwhile = write(5);
  ledger.receiveCame(0, at(900));
  expect(delivered(1, 1, before, 901)).toEqual([]);
  expect(delivered(1, 2, meanwhile, 902)).toEqual([]);
  expect(delivered(0, 1, before, 903)).toEqual([{ kind: "edit-acknowledged", ms: 903 }]);
});

test("[PED3] edits that a snapshot contains are not judged", () => {
  const { ledger, found, write, delivered } = begin();
  const edit = write(0);
  ledger.receiveWent(1);
  expect(delivered(0, 4, edit, 3)).toEqual([{ kind: "edit-acknowledged", ms: 3 }]);
  expect(found((findings) => ledger.receiveSnapshot(1, seq(6), findings))).toEqual([{ kind: "edit-unjudged" }]);
  expect(ledger.oldestAt).toBeUndefined();
});

test("[PED4] an acknowledged edit is late once for each participant that is present long enough without it", () => {
  const { ledger, write, delivered, ticked } = begin(2);
  const edit = write(0);
  delivered(0, 1, edit, 10);
  ledger.receiveWent(2);
  ledger.receiveCame(2, at(500));
  expect(ticked(1_009)).toEqual([]);
  expect(ticked(1_010)).toEqual([{ kind: "edit-late" }]);
  expect(ticked(9_999)).toEqual([]);
  expect(delivered(1, 1, edit, 10_000), "late, and not lost").toEqual([{ kind: "edit-arrived", ms: 10_000 }]);
});

test("[PED5] the ledger waits neither for a participant that never came nor for the writer", () => {
  const { ledger, write, delivered } = begin(0);
  const edit = write(0);
  ledger.receiveCame(1, at(1));
  delivered(0, 1, edit, 2);
  expect(ledger.oldestAt).toBeUndefined();
});

test("[PED6] above its memory bound the ledger does not judge the oldest edits", () => {
  const { ledger, found, write } = begin(2, 3);
  for (let now = 0; now < 3; now++) write(now);
  expect(found((findings) => void ledger.write(0, at(3), findings))).toEqual([{ kind: "edit-unjudged" }, { kind: "edit-unjudged" }]);
  expect(ledger.oldestAt).toBe(1);
});

test("[PED7] edits that the server rolled back are reported, and measuring starts again", () => {
  const { ledger, found, write, delivered } = begin();
  write(0);
  delivered(1, 9, undefined, 1);
  expect(found((findings) => ledger.receiveRolledBack(findings))).toEqual([{ kind: "rolled-back" }, { kind: "edit-unjudged" }]);
  const after = write(2);
  expect(delivered(0, 3, after, 4), "the position of before is no more").toEqual([{ kind: "edit-acknowledged", ms: 2 }]);
  expect(delivered(1, 3, after, 4)).toEqual([{ kind: "edit-arrived", ms: 2 }]);
});

test("[PED8] an edit that its writer received in a snapshot waits only until the writer's next edit is acknowledged", () => {
  const { ledger, found, write, delivered } = begin();
  const first = write(0);
  ledger.receiveWent(0);
  expect(found((findings) => ledger.receiveSnapshot(0, seq(6), findings))).toEqual([]);
  ledger.receiveCame(0, at(5));
  expect(delivered(1, 4, first, 6)).toEqual([]);
  expect(ledger.oldestAt, "the snapshot may not contain it").toBe(0);
  const second = write(10);
  delivered(1, 7, second, 12);
  expect(delivered(0, 7, second, 13)).toEqual([{ kind: "edit-acknowledged", ms: 3 }, { kind: "edit-unjudged" }]);
  expect(ledger.oldestAt).toBeUndefined();
});

test("[PED8] an edit that everybody received in a snapshot is not judged once the writer's next edit has arrived", () => {
  const { ledger, found, write, delivered } = begin(2);
  write(0);
  for (const participant of [0, 1]) {
    ledger.receiveWent(participant);
    expect(found((findings) => ledger.receiveSnapshot(participant, seq(5 + participant), findings))).toEqual([]);
    ledger.receiveCame(participant, at(5));
  }
  const second = write(10);
  expect(delivered(0, 7, second, 13)).toEqual([{ kind: "edit-acknowledged", ms: 3 }, { kind: "edit-unjudged" }]);
  expect(delivered(1, 7, second, 14)).toEqual([{ kind: "edit-arrived", ms: 4 }, { kind: "edit-unjudged" }]);
  expect(ledger.oldestAt, "the third participant has received neither").toBe(0);
  expect(found((findings) => ledger.receiveSnapshot(2, seq(9), findings))).toEqual([{ kind: "edit-unjudged" }, { kind: "edit-unjudged" }]);
  expect(ledger.oldestAt).toBeUndefined();
});

test("[PED8] without a snapshot an edit waits for its own acknowledgement", () => {
  const { ledger, write, delivered } = begin();
  const [first, second] = [write(0), write(1)];
  delivered(1, 1, first, 2);
  delivered(1, 2, second, 3);
  expect(delivered(0, 2, second, 4)).toEqual([{ kind: "edit-acknowledged", ms: 3 }]);
  expect(ledger.oldestAt).toBe(0);
});
