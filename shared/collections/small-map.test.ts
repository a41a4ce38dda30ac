import fc from "fast-check";
import { expect, test } from "vitest";

import { SmallMap } from "./small-map.ts";

type Entry = { readonly key: number; readonly value: number };
const keyOf = ({ key }: Entry): number => key;
const steps = fc.array(
  fc.record({ what: fc.constantFrom("set", "set", "delete"), key: fc.integer({ min: 0, max: 24 }), value: fc.nat() }),
  { maxLength: 120 },
);

test("[FEW1] a small map holds the same entries as a Map, in the same order, with few or many entries", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const few = new SmallMap(keyOf);
      const map = new Map<number, Entry>();
      for (const { what, key, value } of taken) {
        if (what === "delete") expect(few.delete(key)).toBe(map.delete(key));
        else {
          few.set({ key, value });
          map.set(key, { key, value });
        }
        expect(few.size).toBe(map.size);
        expect(few.get(key)).toEqual(map.get(key));
        expect(few.has(key)).toBe(map.has(key));
      }
      expect([...few.values()]).toEqual([...map.values()]);
    }),
  );
});

test("[FEW2] a loop over a small map may remove the entries that it visits", () => {
  for (const size of [5, 50]) {
    const few = new SmallMap(keyOf);
    for (let key = 0; key < size; key++) few.set({ key, value: key });
    const met: number[] = [];
    for (const { key } of few.values()) {
      met.push(key);
      few.delete(key);
    }
    expect(met).toHaveLength(size);
    expect(few.size).toBe(0);
  }
});
