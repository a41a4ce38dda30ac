import { expect, test } from "vitest";

import { parseWholeNumber } from "./whole-number.ts";

test("[WHN1] only decimal digits up to the safe integers are a whole number", () => {
  expect(["0", "7", "007", "9007199254740991"].map(parseWholeNumber)).toEqual([0, 7, 7, 9007199254740991]);
  for (const text of ["", " 1", "1 ", "0x1", "1e3", "0b1", "+1", "-1", "1.0", "Infinity", "9007199254740992", "99999999999999999999"])
    expect(parseWholeNumber(text), text).toBeUndefined();
});
