import { expect, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import type { Finding } from "./findings.ts";
import { PointerLedger, SIDE } from "./pointer-ledger.ts";

const at = (ms: number): Millis => ms as Millis;

test("[PPL1] the ledger measures how long a pointer took to be seen, and which pointers were overtaken", () => {
  const [ledger, findings]: [PointerLedger, Finding[]] = [new PointerLedger(), []];
  const [, second] = [ledger.point(0, at(0), findings), ledger.point(0, at(100), findings)];
  const third = ledger.point(0, at(200), findings);
  ledger.receiveSeen(1, second, at(140), findings);
  expect(findings, "the other does not point there").toEqual([]);
  ledger.receiveSeen(0, second, at(145), findings);
  ledger.receiveSeen(0, second, at(150), findings);
  ledger.receiveSeen(0, third, at(230), findings);
  expect(findings).toEqual([{ kind: "presence-overtaken" }, { kind: "presence-seen", ms: 45 }, { kind: "presence-seen", ms: 30 }]);
});

test("[PPL2] a pointer shown before its viewer left is not measured", () => {
  const [ledger, findings]: [PointerLedger, Finding[]] = [new PointerLedger(), []];
  const point = ledger.point(0, at(0), findings);
  ledger.receiveWent();
  ledger.receiveSeen(0, point, at(5_000), findings);
  expect(findings).toEqual([]);
});

test("[PPL3] pointers are in the viewport, and no two waiting pointers are equal, even if many of them are never received", () => {
  const [ledger, findings]: [PointerLedger, Finding[]] = [new PointerLedger(), []];
  const points = Array.from({ length: 10_000 }, (_, now) => ledger.point(0, at(now), findings));
  expect(points.every(({ x, y }) => x >= 0 && x < SIDE && y >= 0 && y < SIDE)).toBe(true);
  expect(new Set(points.slice(-200).map(({ x, y }) => `${x} ${y}`)).size).toBe(200);
  expect(findings).toHaveLength(9_900);
  ledger.receiveSeen(0, points.at(-1)!, at(10_000), findings);
  expect(findings.at(-1)).toEqual({ kind: "presence-seen", ms: 1 });
});
