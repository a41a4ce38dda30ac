import fc from "fast-check";
import { expect, test } from "vitest";

import { LazyMap, LazySet } from "./lazy-map.ts";

type Step = { readonly kind: "put" | "delete" | "clear"; readonly key: number };

const steps = fc.array(fc.record({ kind: fc.constantFrom("put", "put", "delete", "clear"), key: fc.nat(3) }) as fc.Arbitrary<Step>, {
  maxLength: 40,
});

test("a seldom map holds what a map holds, through being empty and not", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const [seldom, map] = [new LazyMap<number, number>(), new Map<number, number>()];
      taken.forEach(({ kind, key }, index) => {
        if (kind === "put") {
          seldom.set(key, index);
          map.set(key, index);
        } else if (kind === "delete") expect(seldom.delete(key)).toBe(map.delete(key));
        else {
          seldom.clear();
          map.clear();
        }
        expect([...seldom]).toEqual([...map]);
        expect([...seldom.keys()]).toEqual([...map.keys()]);
        expect([...seldom.values()]).toEqual([...map.values()]);
        expect([seldom.size, seldom.has(key), seldom.get(key)]).toEqual([map.size, map.has(key), map.get(key)]);
      });
    }),
  );
});

test("a seldom set holds what a set holds, through being empty and not", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const [seldom, set] = [new LazySet<number>(), new Set<number>()];
      for (const { kind, key } of taken) {
        if (kind === "put") {
          seldom.add(key);
          set.add(key);
        } else if (kind === "delete") expect(seldom.delete(key)).toBe(set.delete(key));
        else {
          seldom.clear();
          set.clear();
        }
        expect([...seldom]).toEqual([...set]);
        expect([seldom.size, seldom.has(key)]).toEqual([set.size, set.has(key)]);
      }
    }),
  );
});
