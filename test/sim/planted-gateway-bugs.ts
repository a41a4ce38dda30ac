/** Planted bugs of a gateway: see `planted-bugs.ts`. */

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
