/** Planted bugs of a room server: in the handling of resubmitted edits, of refused records, and of a slow log. */

import type { OwnerAnnouncement } from "../../shared/bus/envelope.ts";
import type { PlantedHooks } from "./planted-hooks.ts";
import type { Size } from "./sizes.ts";

/** A room server treats each resubmitted edit as one that a room server has sealed. */
export const forgedTaken = {
  name: "forged edits taken",
  roomServer: (ports) => ({ ...ports, seal: { ...ports.seal, isGenuine: () => true } }),
  faults: ({ faultyMs }: Size) => [
    { kind: "hostile client in the room" as const, atMs: faultyMs / 4, forMs: faultyMs / 2, whom: 0, how: 0 },
  ],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A room server continues after the log refused a record for lack of storage, as if the log had the record. */
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

/** A room server does not send some announcements to its gateways. */
function unannounced(name: string, isDropped: (message: OwnerAnnouncement) => boolean) {
  return {
    name,
    roomServer: (ports) => ({
      ...ports,
      gateways: {
        answer: (...of) => ports.gateways.answer(...of),
        broadcast: (room, message) => {
          if (!isDropped(message)) ports.gateways.broadcast(room, message);
        },
      },
    }),
    faults: () => [],
  } satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };
}

/** Others see an edit only when the log has it. */
export const tentativeNotShown = unannounced("tentative edits never shown", ({ kind }) => kind === "tentative");
/** Authors take edits for saved in time that wait for the log. */
export const savingNotAnnounced = unannounced("slow log never announced", ({ kind }) => kind === "saving");
/** Clients show a delay after the log has recovered. */
export const savedNotAnnounced = unannounced(
  "end of a slow log never announced",
  (message) => message.kind === "saving" && message.state === "saved",
);
