/**
 * The HTTP routes that change a room. Each write becomes one edit. The content of an edit is checked, so that a
 * backend's mistake does not reach a room's log, and text and JSON are converted. Nothing is written to the log here:
 * the gateway sends the edit like any other. A repeated deletion has the same effect and answer.
 */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { type InternalResponse, refusal, jsonResponse } from "../../shared/io/internal-http.ts";
import type { Made } from "../content.ts";
import type { DocumentHost } from "../document-host.ts";
import { decodeUtf8, NO_UTF8, TYPE_NAME_CHARACTERS_MAX } from "../json-content.ts";
import type { EditMaking, Unread } from "../ports.ts";
import { type RoomQuestion, type RoomRoute, isRead, TOO_LARGE, unread } from "./http.ts";

const DEFAULT_TEXT = "text";
export function writeRoutes(making: EditMaking): RoomRoute[] {
  const edit = async (question: RoomQuestion): Promise<InternalResponse> => {
    const body = await question.body();
    if (body === undefined) return TOO_LARGE;
    if (body.byteLength === 0) return refusal(400, "bad-content", "there is no content: send a body");
    return editResponse(await madeOf(making, question, body));
  };
  return [{ method: "POST", place: "edit", answer: edit }];
}

export function editResponse(made: Made | Unread | InternalResponse): InternalResponse {
  if (!isRead(made)) return unread(made);
  if ("status" in made) return made;
  return made.kind === "edit"
    ? { status: 200, name: "edit", headers: { "content-type": "application/octet-stream" }, body: made.edit }
    : refusal(400, "bad-content", made.why);
}

const BAD_TYPE_NAME = refusal(
  400,
  "bad-content",
  `type is the name of the text, 1 to ${TYPE_NAME_CHARACTERS_MAX} characters and not "__proto__": leave it out for a text named ${DEFAULT_TEXT}`,
);

/** The edit that makes a body of one of the accepted types. */
export function madeOf(
  making: EditMaking,
  { room, header, query }: Pick<RoomQuestion, "room" | "header" | "query">,
  body: Uint8Array,
): Promise<Made | Unread> | InternalResponse {
  const [type, ...parameters] = header("content-type")
    .toLowerCase()
    .split(";")
    .map((part) => part.trim()) as [string, ...string[]];
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice("charset=".length)
    .replaceAll('"', "");
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8")
    return refusal(415, "bad-content-type", `the body has the charset ${charset}: send it as UTF-8`);
  switch (type) {
    case "application/octet-stream":
      return making.check(body, room);
    case "text/plain": {
      const [value, name] = [decodeUtf8(body), query.get("type") ?? DEFAULT_TEXT];
      if (name === "" || name.length > TYPE_NAME_CHARACTERS_MAX || name === "__proto__") return BAD_TYPE_NAME;
      return value === undefined ? refusal(400, "bad-content", NO_UTF8) : making.make({ types: { [name]: { kind: "text", value } } }, room);
    }
    case "application/json":
      return making.makeOfJson(body, room);
    default:
      return refusal(
        415,
        "bad-content-type",
        "send application/octet-stream (a Yjs update), text/plain, or application/json (as the document is read)",
      );
  }
}

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
        return refusal(404, "no-room", "this room never existed: there is nothing to delete");
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
