import fc from "fast-check";
import { expect, test } from "vitest";

import type { ClientId } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { CATCHING_UP, LIVE, MemberConnections } from "./members.ts";

const clientOf = (number: number): ClientId => `client-${number}` as ClientId;
const steps = fc.array(
  fc.record({
    what: fc.constantFrom("come", "come", "come", "go live", "leave"),
    connection: fc.integer({ min: 1, max: 40 }),
    client: fc.integer({ min: 1, max: 30 }),
  }),
  { maxLength: 200 },
);

test("[MEM1] a client's connections are those that joined with its id and have not left, with few or many members", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const members = new MemberConnections();
      const clients = new Map<number, number>();
      const live = new Set<number>();
      for (const { what, connection, client } of taken) {
        const id = connection as ConnectionId;
        if (what === "leave") {
          expect(members.remove(id) !== undefined).toBe(clients.delete(connection));
          live.delete(connection);
        } else if (what === "come") {
          members.set({ connection: id, client: clientOf(client), state: CATCHING_UP });
          clients.set(connection, client);
          live.delete(connection);
        } else if (clients.has(connection)) {
          members.set({ ...members.get(id)!, state: LIVE });
          live.add(connection);
        }
        expect([members.size, members.count("live")]).toEqual([clients.size, live.size]);
      }
      for (let client = 1; client <= 30; client++) {
        const connections = [...clients].filter(([, is]) => is === client).map(([connection]) => connection);
        const own = members.of(clientOf(client)).map(({ connection }) => connection);
        expect(own.toSorted((a, b) => a - b)).toEqual(connections.toSorted((a, b) => a - b));
        expect(members.has(clientOf(client))).toBe(connections.length > 0);
        const [only] = connections;
        expect(members.soleLive(clientOf(client))).toBe(connections.length === 1 && live.has(only!) ? only : undefined);
      }
    }),
  );
});
