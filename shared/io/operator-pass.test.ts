import { expect, test } from "vitest";

import type { UnixMillis } from "../ids.ts";
import { isOperatorPass, makeOperatorPass } from "./operator-pass.ts";

const SECRET = "what the tiers show each other, of 32";
const at = (seconds: number): UnixMillis => (seconds * 1_000) as UnixMillis;

test("[PAS1] a pass is valid until it expires, and only with its own secret", () => {
  const pass = makeOperatorPass(SECRET, at(500));
  expect([isOperatorPass(pass, SECRET, at(499)), isOperatorPass(pass, SECRET, at(500)), isOperatorPass(pass, `${SECRET}!`, at(1))]).toEqual(
    [true, false, false],
  );
  expect(isOperatorPass(makeOperatorPass("", at(500)), "", at(1))).toBe(false);
});

test("[PAS2] a changed pass, or a text in the form of a pass, is invalid", () => {
  const pass = makeOperatorPass(SECRET, at(500));
  const [name, , seal] = pass.split(".");
  for (const forged of [
    `${name}.999999.${seal}`,
    `${name}.0500.${seal}`,
    pass.slice(0, -1),
    `${pass}x`,
    `operator.500.${"A".repeat(43)}`,
    "operator.500.",
    "",
    SECRET,
  ])
    expect([forged, isOperatorPass(forged, SECRET, at(1))]).toEqual([forged, false]);
});
