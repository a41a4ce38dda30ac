import { expect, test } from "vitest";

import { CursorMoves } from "./cursor-moves.ts";
import { type BenchFigures, failureOf, isGeneratorLimit, reasonOf, reasonOfClose, Reasons, summaryOf } from "./figures.ts";
import { Latencies } from "./latencies.ts";
import { loadText, reportText } from "./report.ts";

const few = { count: 4, p50: 1.5, p99: 12, max: 120 };
const good: BenchFigures = {
  url: "https://rooms.example",
  isStopped: false,
  tenant: "coroom-bench",
  load: { rooms: 1, people: 2, editRate: 2, cursorRate: 2, seconds: 2, rampUpSeconds: 0 },
  loadSeconds: 2,
  connections: { wanted: 2, opened: 2, joinMs: few },
  edits: {
    sent: 4,
    acknowledged: 4,
    received: 4,
    expected: 4,
    repeated: 0,
    acknowledgedMs: few,
    receivedMs: few,
    missing: [],
  },
  cursors: { sent: 4, seen: 3, seenMs: few },
  refusals: [],
  disconnects: [],
  reconnects: { count: 0, awayMs: undefined },
  generator: { cpuCores: 0.2, lateMs: few, isLimit: false },
  rooms: { deleted: 1, left: [], why: "" },
};
const edits = (changed: Partial<BenchFigures["edits"]>): BenchFigures => ({ ...good, edits: { ...good.edits, ...changed } });

test("[BNC13] a run without losses is no failure, and its report names every figure once", () => {
  expect(failureOf(good)).toBeUndefined();
  const report = reportText(good);
  expect(report).toContain("2 of 2 opened");
  expect(report).toContain("4 sent, 4 acknowledged, 4 of 4 receipts by other people");
  expect(report).toContain("p50 1.5 ms, p99 12 ms, max 120 ms");
  expect(report).toContain("refusals        none");
  expect(report).not.toMatch(/MISSING|The generator/);
  expect(loadText(good.url, good.tenant, good.load)).toContain("1 room of 2 people, 2 edits and 2 cursor moves per second for 2 s");
});

test.each<[string, BenchFigures, string]>([
  ["nobody joined", { ...good, connections: { wanted: 2, opened: 0, joinMs: undefined } }, "nobody could join"],
  [
    "it was stopped before",
    { ...good, isStopped: true, connections: { wanted: 2, opened: 0, joinMs: undefined } },
    "before anybody had joined",
  ],
  ["an edit has no acknowledgement", edits({ acknowledged: 3 }), "1 edits were not acknowledged, and 0 receipts are missing"],
  ["a receipt is missing", edits({ received: 3 }), "0 edits were not acknowledged, and 1 receipts are missing"],
  ["a receipt is repeated", edits({ repeated: 1 }), "1 receipts were repeated"],
  ["the run was stopped", { ...good, loadSeconds: 1 }, "stopped by a signal after 1 of 2 s"],
  ["a room is left", { ...good, rooms: { deleted: 0, left: ["coroom-bench-x-1"], why: "busy" } }, "some rooms were not deleted"],
])("[BNC14] %s: the command fails and states why", (_, figures, reason) => {
  expect(failureOf(figures)).toContain(reason);
});

test("[BNC27] rooms that are left are printed with the command that deletes them", () => {
  const report = reportText({ ...good, rooms: { deleted: 0, left: ["coroom-bench-x-1"], why: "busy" } });
  expect(report).toContain("coroom delete-room ROOM --tenant coroom-bench. Rooms: coroom-bench-x-1");
});

test("[BNC15] missing edits are listed with room, person and author, up to 20 lines", () => {
  const missing = { room: "coroom-bench-x-1", person: "person 2", author: "person 1", edits: "3 to 5", count: 3, isConnected: true };
  const report = reportText(
    edits({ missing: [missing, { ...missing, person: "person 1" }, ...Array.from({ length: 30 }, () => missing)] }),
  );
  expect(report).toContain("coroom-bench-x-1: person 2 lacks edits 3 to 5 of person 1");
  expect(report).toContain("edits 3 to 5 of person 1 were not acknowledged");
  expect(report).toContain("and 12 more");
  expect(reportText(edits({ missing: [{ ...missing, isConnected: false }] }))).toContain("person 2 (not connected at the end) lacks");
});

test("[BNC16] a busy or late generator is named as the limit, and a shared machine is named", () => {
  expect([isGeneratorLimit(0.9, few), isGeneratorLimit(0.1, { ...few, p99: 26 }), isGeneratorLimit(0.5, few)]).toEqual([true, true, false]);
  expect(reportText({ ...good, generator: { ...good.generator, isLimit: true } })).toContain("The generator was the limit");
  expect(reportText({ ...good, url: "http://127.0.0.1:8080" })).toContain("share one machine");
});

test("[BNC17] refusals and closed connections count by the gateway's reason, the most frequent first", () => {
  const reasons = new Reasons();
  reasons.add(reasonOfClose({ code: 1006, reason: "" }));
  for (let time = 0; time < 2; time++)
    reasons.add(reasonOf({ kind: "room-unavailable", reason: "room-full", retryInMs: 1, message: "full" }));
  reasons.add(reasonOf({ kind: "connection-refused", code: 4101, message: "no" }));
  reasons.add(reasonOfClose({ code: 4008, reason: "" }));
  expect(reasons.all.map(({ reason, count }) => `${count} ${reason}`)).toEqual([
    "2 room-full",
    "1 broken",
    "1 unauthorized",
    "1 tenantFull",
  ]);
  expect(reasons.all.at(-1)!.message).toBe("the tenant or the user has as many connections as allowed (close code 4008)");
  expect(reportText({ ...good, refusals: reasons.all })).toContain("refusals        2 room-full: full");
});

test("[BNC18] a point shows the newest move that ended there, and points are used again after 4,096 moves", () => {
  const moves = new CursorMoves();
  const first = moves.move(1);
  expect(moves.moveTo(first)).toEqual({ move: 1, at: 1 });
  expect(moves.moveTo({ x: 1, y: 0 })).toBeUndefined();
  expect(moves.moveTo({ x: -1, y: 70 })).toBeUndefined();
  for (let move = 2; move <= 4_097; move++) moves.move(move);
  expect([moves.count, moves.moveTo(first), moves.moveTo({ x: 1, y: 0 })]).toEqual([4_097, { move: 4_097, at: 4_097 }, { move: 2, at: 2 }]);
});

test("[BNC19] without a sample there is no summary", () => {
  expect(summaryOf(new Latencies())).toBeUndefined();
});
