import fc from "fast-check";
import { expect, test } from "vitest";

import { BoundedMap } from "./bounded-map.ts";

const step = fc.record({ kind: fc.constantFrom("get", "set", "delete"), key: fc.integer({ min: 0, max: 12 }) });

test("[BMAP1] a value that is found is the last one set, and an entry stays while few other keys are used after it", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 10 }), fc.array(step, { maxLength: 100 }), (countMax, steps) => {
      const map = new BoundedMap<number, number>(countMax);
      const values = new Map<number, number>();
      /** Keys in the order of their last use. */
      let used: number[] = [];
      for (const [index, { kind, key }] of steps.entries()) {
        if (kind === "delete") {
          map.delete(key);
          values.delete(key);
          used = used.filter((other) => other !== key);
        } else {
          const isKept = used.slice(-Math.floor(countMax / 2)).includes(key);
          if (isKept) expect(map.get(key)).toBe(values.get(key));
          const found = map.get(key);
          if (found !== undefined) expect(found).toBe(values.get(key));
          if (kind === "set") {
            map.set(key, index);
            values.set(key, index);
          }
          if (kind === "set" || found !== undefined) used = [...used.filter((other) => other !== key), key];
        }
        expect(map.size).toBeLessThanOrEqual(countMax);
      }
    }),
  );
});

test("[BMAP2] a key that is read or set again stays, counts once, and can be deleted in either generation", () => {
  const map = new BoundedMap<number, number>(4);
  for (const key of [1, 2, 3]) map.set(key, key);
  expect([map.get(1), map.size]).toEqual([1, 3]);
  map.set(4, 4);
  expect([1, 2, 3, 4].map((key) => map.get(key))).toEqual([1, undefined, 3, 4]);
  map.set(3, 30);
  expect([map.get(1), map.get(3), map.size]).toEqual([1, 30, 3]);
  for (const key of [1, 3, 4]) map.delete(key);
  expect([map.get(1), map.size]).toEqual([undefined, 0]);
});
