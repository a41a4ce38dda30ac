/** The HTTP route that deletes a room, for gateways. A repeated request has the same effect and answer. */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { jsonResponse, refusal } from "../../shared/io/internal-http.ts";
import type { DocumentHost } from "../document-host.ts";
import type { RoomRoute } from "./http.ts";

/** The answer to every request about a deleted room. */
export const DELETED = refusal(410, "deleted", "the room is deleted permanently: create another room under a new name");

export function deleteRoutes(host: Pick<DocumentHost, "delete">): RoomRoute[] {
  const answer = async ({ room }: { room: RoomKey }) => {
    const outcome = await host.delete(room);
    switch (outcome) {
      case "wiped":
        return jsonResponse(200, "deleted", { deleted: true, wiped: true });
      case "wiping":
        return jsonResponse(202, "deleted", { deleted: true, wiped: false });
      case "no-room":
        return refusal(404, "no-room", "nobody was ever in this room: there is nothing to delete");
      case "elsewhere":
        return refusal(503, "loading", "this room is not ready: ask again");
      case "unknown":
        return refusal(503, "unknown", "the log does not answer, so it is not known whether the room is deleted: ask again");
      default:
        return assertNever(outcome);
    }
  };
  return [{ method: "DELETE", place: "", answer }];
}
