/** Bugs in what a room server believes of others: of a client that submits an edit again, and of a log that refuses a record. */

import type { PlantedHooks } from "./planted-hooks.ts";
import type { Size } from "./sizes.ts";

/** A room server takes any edit that is submitted again for one that a room server has sealed. */
export const forgedTaken = {
  name: "forged edits taken",
  roomServer: (ports) => ({ ...ports, seal: { ...ports.seal, isGenuine: () => true } }),
  faults: ({ faultyMs }: Size) => [
    { kind: "hostile client in the room" as const, atMs: faultyMs / 4, forMs: faultyMs / 2, whom: 0, how: 0 },
  ],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A room server goes on after a record that the log refused for lack of storage, as if the log had it. */
export const refusalIgnored = {
  name: "refusal of a full log ignored",
  roomServer: (ports) => ({
    ...ports,
    log: {
      ...ports.log,
      append: (room, record, settled) => {
        const abandon = ports.log.append(room, record, settled, () => {
          abandon("failed");
          settled({ kind: "appended", streamSeq: record.expectedStreamSeq + 1 });
        });
        return abandon;
      },
    },
  }),
  faults: ({ faultyMs }: Size) => [{ kind: "storage of the log full" as const, atMs: faultyMs / 3, forMs: 1_600, whom: 0, how: 0 }],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };
