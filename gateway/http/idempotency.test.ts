import { expect, test } from "vitest";

import { clientKeyOf, refuseKey, type WriteScope } from "./idempotency.ts";

let drawn = 0;
const keys = { digest: (of: string | Uint8Array) => `<${String(of)}>`, randomKey: () => `random ${++drawn}` };
const keyOf = (scope: WriteScope, key: string, body = "") =>
  clientKeyOf({ header: () => key, body: new TextEncoder().encode(body) }, scope, keys);

test("[IDM1] the same Idempotency-Key names the same edit, and another edit in another scope", () => {
  expect(keyOf("edit", "a", "one")).toBe(keyOf("edit", "a", "two"));
  expect(keyOf("edit", "a")).not.toBe(keyOf("restore", "a"));
});

test("[IDM2] without a key a new document is named by its content, and every other write is a new edit", () => {
  expect(keyOf("create", "", "same")).toBe(keyOf("create", "", "same"));
  expect(keyOf("edit", "", "same")).not.toBe(keyOf("edit", "", "same"));
});

test("[IDM3] a key of more than 255 characters is refused", () => {
  expect(refuseKey({ header: () => "x".repeat(255) })).toBeUndefined();
  expect(refuseKey({ header: () => "x".repeat(256) })).toMatchObject({ status: 400 });
});
