import fc from "fast-check";
import { expect, test } from "vitest";

import { LazyMap, LazySet } from "./lazy-map.ts";

type Step = { readonly kind: "put" | "delete" | "clear"; readonly key: number };

const steps = fc.array(fc.record({ kind: fc.constantFrom("put", "put", "delete", "clear"), key: fc.nat(3) }) as fc.Arbitrary<Step>, {
  maxLength: 40,
});

test("a lazy map behaves like a Map, empty or not", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const [lazy, map] = [new LazyMap<number, number>(), new Map<number, number>()];
      taken.forEach(({ kind, key }, index) => {
        if (kind === "put") {
          lazy.set(key, index);
          map.set(key, index);
        } else if (kind === "delete") expect(lazy.delete(key)).toBe(map.delete(key));
        else {
          lazy.clear();
          map.clear();
        }
        expect([...lazy]).toEqual([...map]);
        expect([...lazy.keys()]).toEqual([...map.keys()]);
        expect([...lazy.values()]).toEqual([...map.values()]);
        expect([lazy.size, lazy.has(key), lazy.get(key)]).toEqual([map.size, map.has(key), map.get(key)]);
      });
    }),
  );
});

test("a lazy set behaves like a Set, empty or not", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const [lazy, set] = [new LazySet<number>(), new Set<number>()];
      for (const { kind, key } of taken) {
        if (kind === "put") {
          lazy.add(key);
          set.add(key);
        } else if (kind === "delete") expect(lazy.delete(key)).toBe(set.delete(key));
        else {
          lazy.clear();
          set.clear();
        }
        expect([...lazy]).toEqual([...set]);
        expect([lazy.size, lazy.has(key)]).toEqual([set.size, set.has(key)]);
      }
    }),
  );
});
