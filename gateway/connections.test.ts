import fc from "fast-check";
import { expect, test } from "vitest";

import { Connections } from "./connections.ts";
import type { ConnectionId } from "./ports.ts";

type Value = { readonly of: number };
const idOf = (id: number): ConnectionId => id as ConnectionId;
const steps = fc.array(fc.record({ what: fc.constantFrom("set", "set", "delete"), id: fc.integer({ min: 1, max: 70 }) }), {
  maxLength: 200,
});

test("[CNX1] connections behave like a Map", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const connections = new Connections<Value>();
      const map = new Map<ConnectionId, Value>();
      for (const { what, id } of taken) {
        if (what === "delete") expect(connections.delete(idOf(id))).toBe(map.delete(idOf(id)));
        else {
          connections.set(idOf(id), { of: id });
          map.set(idOf(id), { of: id });
        }
        expect(connections.size).toBe(map.size);
        expect(connections.has(idOf(id))).toBe(map.has(idOf(id)));
        expect(connections.get(idOf(id))).toEqual(map.get(idOf(id)));
      }
      const met: [ConnectionId, Value][] = [];
      connections.forEach((value, id) => met.push([id, value]));
      const byId = ([a]: [ConnectionId, Value], [b]: [ConnectionId, Value]): number => a - b;
      expect(met.toSorted(byId)).toEqual([...map].toSorted(byId));
      expect([...connections]).toEqual(met);
      expect([...connections.keys()]).toEqual(met.map(([id]) => id));
      expect([...connections.values()]).toEqual(met.map(([, value]) => value));
    }),
  );
});

test("[CNX2] a loop that deletes entries visits every remaining entry once", () => {
  const loops: ((connections: Connections<Value>, meet: (id: number) => void) => void)[] = [
    (connections, meet) => connections.forEach(({ of }) => meet(of)),
    (connections, meet) => {
      for (const [, { of }] of connections) meet(of);
    },
  ];
  for (const loop of loops) {
    const connections = new Connections<Value>();
    for (let id = 1; id <= 100; id++) connections.set(idOf(id), { of: id });
    const met: number[] = [];
    loop(connections, (id) => {
      met.push(id);
      connections.delete(idOf(id));
      if (id % 10 === 1) for (let other = id + 1; other < id + 5; other++) connections.delete(idOf(other));
    });
    const gone = (id: number): boolean => id % 10 >= 2 && id % 10 <= 5;
    expect(met).toEqual(Array.from({ length: 100 }, (_, index) => index + 1).filter((id) => !gone(id)));
    expect(connections.size).toBe(0);
  }
});
