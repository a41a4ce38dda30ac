import { expect, test } from "vitest";

import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import { CREATE, EDIT, RESTORE, type WritePlan } from "./document-writes.ts";
import { editNameOf, refuseKey } from "./idempotency.ts";

let drawn = 0;
const naming = {
  digest: (of: string | Uint8Array) => `<${typeof of === "string" ? of : new TextDecoder().decode(of)}>`,
  number: (of: string) => [...of].reduce((sum, letter) => sum + letter.charCodeAt(0), 0),
  randomKey: () => `random ${++drawn}`,
};
const nameOf = (plan: WritePlan, key: string, { body = "", query = "", type = "" } = {}) =>
  editNameOf(
    {
      header: (name) => (name === "content-type" ? type : key),
      body: new TextEncoder().encode(body),
      query: new URLSearchParams(query),
    },
    plan,
    naming,
  );
const keyOf = (...given: Parameters<typeof nameOf>) => nameOf(...given).key;

test("[IDM1] the same Idempotency-Key names the same edit, and another edit in another scope", () => {
  expect(keyOf(EDIT, "a", { body: "one" })).toBe(keyOf(EDIT, "a", { body: "two" }));
  expect(keyOf(EDIT, "a")).not.toBe(keyOf(RESTORE, "a"));
});

test("[IDM2] without a key a new document is named by its content, and every other write is a new edit", () => {
  expect(nameOf(CREATE, "", { body: "same" })).toEqual(nameOf(CREATE, "", { body: "same" }));
  expect(keyOf(CREATE, "", { body: "same", type: "text/plain" })).not.toBe(keyOf(CREATE, "", { body: "same", type: "application/json" }));
  expect(keyOf(EDIT, "", { body: "same" })).not.toBe(keyOf(EDIT, "", { body: "same" }));
});

test("[IDM4] another body, type or parameter under the same key gives another counter", () => {
  const counterOf = (...given: Parameters<typeof nameOf>) => nameOf(...given).counter;
  const one = counterOf(EDIT, "a", { body: "one", type: "t" });
  expect(one).toBe(counterOf(EDIT, "a", { body: "one", type: "t", query: "token=x" }));
  expect(one).toBeGreaterThanOrEqual(ONLY_EDIT_COUNTER_MIN);
  expect(one).not.toBe(counterOf(EDIT, "a", { body: "two", type: "t" }));
  expect(one).not.toBe(counterOf(EDIT, "a", { body: "one", type: "u" }));
  expect(counterOf(RESTORE, "a", { query: "seq=2" })).not.toBe(counterOf(RESTORE, "a", { query: "seq=3" }));
});

test("[IDM3] a key of more than 255 characters is refused", () => {
  expect(refuseKey({ header: () => "x".repeat(255) })).toBeUndefined();
  expect(refuseKey({ header: () => "x".repeat(256) })).toMatchObject({ status: 400 });
});
