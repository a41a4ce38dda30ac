import { expect, test } from "vitest";

import { NO_FIELDS, valueOf, withField } from "./shown-fields.ts";

const at = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes);

test("[PRE24] a field has its newest value, independent of other fields", () => {
  const fields = [
    ["a", at(1)],
    ["b", at(2)],
    ["a", at(3)],
  ].reduce((shown, [name, value]) => withField(shown, name as string, value as Uint8Array), NO_FIELDS);
  expect(valueOf(fields, "a")).toEqual(at(3));
  expect(valueOf(fields, "b")).toEqual(at(2));
  expect(fields).toHaveLength(2);
});

test("[PRE24] an empty value removes a field", () => {
  expect(valueOf(withField(withField(NO_FIELDS, "a", at(1)), "a", at()), "a")).toBeUndefined();
  expect(withField(NO_FIELDS, "a", at())).toBe(NO_FIELDS);
});

test("[PRE24] a value is kept when the buffer that it came in is reused", () => {
  const lent = at(1, 2);
  const fields = withField(NO_FIELDS, "a", lent);
  lent.fill(9);
  expect(valueOf(fields, "a")).toEqual(at(1, 2));
});
