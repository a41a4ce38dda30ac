/** The end of a room over HTTP, for gateways. Asked again it is answered again: a room is deleted once. */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { jsonAnswer, refusal } from "../../shared/io/internal-http.ts";
import type { DocumentHost } from "../document-host.ts";
import type { RoomRoute } from "./http.ts";

/** For whatever is asked of a room that is no more. */
export const DELETED = refusal(410, "deleted", "the room is deleted for good: begin another under a new name");

export function deleteRoutes(host: Pick<DocumentHost, "delete">): RoomRoute[] {
  const answer = async ({ room }: { room: RoomKey }) => {
    const outcome = await host.delete(room);
    switch (outcome) {
      case "wiped":
        return jsonAnswer(200, "deleted", { deleted: true, wiped: true });
      case "wiping":
        return jsonAnswer(202, "deleted", { deleted: true, wiped: false });
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
