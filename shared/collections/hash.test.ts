import { expect, test } from "vitest";

import { hash32 } from "./hash.ts";

test("[HASH1] a text's hash is the same for all versions, for they meet on one bus", () => {
  expect(["", "a", "rs-1 default.plan", "AAAAAAAAAAAAAAAA 1"].map(hash32)).toEqual([2872998923, 444641715, 1068346170, 2569310647]);
});
