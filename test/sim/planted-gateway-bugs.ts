/** Planted bugs of a gateway: see `planted-bugs.ts`. */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { UserId } from "../../shared/ids.ts";
import type { PlantedHooks } from "./planted-hooks.ts";

/** A gateway forwards the edits of all its members under the user of the first one. Boards and the history name a wrong person. */
export const editsOfAnotherUser = {
  name: "edits of another user",
  gatewayRooms: (rooms) => {
    let first: UserId | undefined;
    return {
      ...rooms,
      sendToOwner: (room, message, epoch) => {
        if (message.kind !== "edits") return rooms.sendToOwner(room, message, epoch);
        const edits = message.edits.map((edit) => ({ ...edit, author: { ...edit.author, user: (first ??= edit.author.user) } }));
        rooms.sendToOwner(room, { ...message, edits }, epoch);
      },
    };
  },
  faults: () => [],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

const banned = [{ kind: "user banned" as const, atMs: 1_000, forMs: 0, whom: 0, how: 0 }];

/** A ban holds only at the gateway that imposed it. */
export const bansNotExchanged = {
  name: "bans not exchanged",
  sanctionsBus: (bus) => ({ ...bus, publishSanction: () => {}, requestSanctions: () => Promise.resolve([]) }),
  faults: () => banned,
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };

/** A gateway does not ask the others for their bans, and publishes its own bans only once. */
export const bansNotRepeated = {
  name: "bans neither requested nor repeated",
  sanctionsBus: (bus) => {
    const published = new Set<Sanction>();
    return {
      ...bus,
      requestSanctions: () => Promise.resolve([]),
      publishSanction: (sanction) => {
        if (!published.has(sanction)) bus.publishSanction(sanction);
        published.add(sanction);
      },
    };
  },
  faults: () => [...banned, { kind: "gateway killed" as const, atMs: 1_500, forMs: 100, whom: 0.9, how: 0 }],
} satisfies PlantedHooks & { readonly name: string; readonly faults: unknown };
