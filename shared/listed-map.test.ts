import fc from "fast-check";
import { expect, test } from "vitest";

import { ListedMap } from "./listed-map.ts";

type Named = { readonly name: number; readonly turn: number };

test("[LMAP1] short or long, it holds what a Map holds, in the same order", () => {
  const steps = fc.array(fc.record({ name: fc.nat({ max: 40 }), adds: fc.boolean() }), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (steps) => {
      const map = new Map<number, Named>();
      const listed = new ListedMap<number, Named>(({ name }) => name);
      steps.forEach(({ name, adds }, turn) => {
        expect(listed.get(name)).toBe(map.get(name));
        if (!adds) {
          map.delete(name);
          listed.delete(name);
        } else if (!map.has(name)) {
          const named = { name, turn };
          map.set(name, named);
          listed.add(named);
        }
        expect([...listed]).toEqual([...map.values()]);
        expect(listed.size).toBe(map.size);
        expect(listed.some(({ name: there }) => there === name)).toBe(map.has(name));
      });
    }),
  );
});
