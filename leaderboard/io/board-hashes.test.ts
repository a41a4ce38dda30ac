import fc from "fast-check";
import { expect, test } from "vitest";

import { reachedAtOf, STAMP_LENGTH, stampOf } from "./board-hashes.ts";

const seq = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(0, 1, 63, 64, 2 ** 53 - 1));

test("[STAMP1] the earlier stamp sorts last by its bytes, all stamps have one length, and each gives its instant back", () => {
  fc.assert(
    fc.property(seq, seq, (a, b) => {
      expect(Buffer.compare(Buffer.from(stampOf(a)), Buffer.from(stampOf(b)))).toBe(Math.sign(b - a));
      expect(stampOf(a)).toHaveLength(STAMP_LENGTH);
      expect(reachedAtOf(stampOf(a))).toBe(a);
    }),
  );
});
