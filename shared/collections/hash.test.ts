import { expect, test } from "vitest";

import { hash32 } from "./hash.ts";

test("[HASH1] the hash of a text is the same in all versions, because they share one bus", () => {
  expect(["", "a", "rs-1 default.plan", "AAAAAAAAAAAAAAAA 1"].map(hash32)).toEqual([2872998923, 444641715, 1068346170, 2569310647]);
});
