import { expect, test } from "vitest";

import { NO_FIELDS, valueOf, withFields } from "./shown-fields.ts";

const at = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes);

test("[PRE24] a field has its newest value, independent of other fields", () => {
  const fields = [
    ["a", at(1)],
    ["b", at(2)],
    ["a", at(3)],
  ].reduce((shown, [name, value]) => withFields(shown, [{ name: name as string, value: value as Uint8Array }]), NO_FIELDS);
  expect(valueOf(fields, "a")).toEqual(at(3));
  expect(valueOf(fields, "b")).toEqual(at(2));
  expect(fields).toHaveLength(2);
});

test("[PRE24] an empty value removes a field", () => {
  expect(valueOf(withFields(withFields(NO_FIELDS, [{ name: "a", value: at(1) }]), [{ name: "a", value: at() }]), "a")).toBeUndefined();
  expect(withFields(NO_FIELDS, [{ name: "a", value: at() }])).toBe(NO_FIELDS);
});

test("[PRE24] the last value of a field that is given twice counts", () => {
  const given = [at(1), at(), at(2), at()].map((value) => ({ name: "a", value }));
  expect(withFields(NO_FIELDS, given.slice(0, 3))).toEqual([{ name: "a", value: at(2) }]);
  expect(withFields(NO_FIELDS, given)).toBe(NO_FIELDS);
});

test("[PRE24] a value is kept when the buffer that it came in is reused", () => {
  const lent = at(1, 2);
  const fields = withFields(NO_FIELDS, [{ name: "a", value: lent }]);
  lent.fill(9);
  expect(valueOf(fields, "a")).toEqual(at(1, 2));
});
