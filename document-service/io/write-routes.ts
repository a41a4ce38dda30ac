/**
 * The HTTP routes that change a room. Each write becomes one edit. The content of an edit is checked, so that a
 * backend's mistake does not reach a room's log, and text and JSON are converted. Nothing is written to the log here:
 * the gateway sends the edit like any other. A repeated deletion has the same effect and answer.
 */

import { z } from "zod";

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { type InternalResponse, refusal, jsonResponse } from "../../shared/io/internal-http.ts";
import type { DocumentContent, Made } from "../content.ts";
import type { DocumentHost } from "../document-host.ts";
import type { DocumentReads, Unread } from "../ports.ts";
import { type RoomQuestion, type RoomRoute, isRead, TOO_LARGE, unread } from "./http.ts";

const DEFAULT_TEXT = "text";
const TYPES_MAX = 100;
/**
 * Levels of arrays and objects in a body. The recursive code that checks and converts content has stack for about a
 * thousand.
 */
const NESTING_MAX = 100;

const TYPE_NAME_CHARACTERS_MAX = 128;
const TypeName = z.string().min(1).max(TYPE_NAME_CHARACTERS_MAX);
const Json = z.object({
  types: z
    .record(
      TypeName,
      z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("text"), value: z.string() }),
        z.object({ kind: z.literal("array"), value: z.array(z.json()) }),
        z.object({ kind: z.literal("map"), value: z.record(z.string(), z.json()) }),
      ]),
    )
    .refine((types) => Object.keys(types).length <= TYPES_MAX, `at most ${TYPES_MAX} shared types`),
});

export function writeRoutes(reading: DocumentReads): RoomRoute[] {
  const edit = async (question: RoomQuestion): Promise<InternalResponse> => {
    const body = await question.body();
    if (body === undefined) return TOO_LARGE;
    if (body.byteLength === 0) return refusal(400, "bad-content", "there is no content: send a body");
    return editResponse(await madeOf(reading, question, body));
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
const NO_UTF8 = refusal(400, "bad-content", "the body is no UTF-8: convert it before you send it");

/** The edit that makes a body of one of the accepted types. */
export function madeOf(
  reading: DocumentReads,
  { header, query }: Pick<RoomQuestion, "header" | "query">,
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
      return reading.check(body);
    case "text/plain": {
      const [value, name] = [textOf(body), query.get("type") ?? DEFAULT_TEXT];
      if (!TypeName.safeParse(name).success || name === "__proto__") return BAD_TYPE_NAME;
      return value === undefined ? NO_UTF8 : reading.make({ types: { [name]: { kind: "text", value } } });
    }
    case "application/json": {
      const content = jsonContent(body);
      return "status" in content ? content : reading.make(content);
    }
    default:
      return refusal(
        415,
        "bad-content-type",
        "send application/octet-stream (a Yjs update), text/plain, or application/json (as the document is read)",
      );
  }
}

function jsonContent(body: Uint8Array): DocumentContent | InternalResponse {
  try {
    const text = textOf(body);
    if (text === undefined) return NO_UTF8;
    const parsed: unknown = JSON.parse(text);
    if (isTooDeep(parsed)) {
      return refusal(
        400,
        "bad-content",
        `arrays and objects lie in each other more than ${NESTING_MAX} deep: make the content flatter, or send it as an edit (a Yjs update)`,
      );
    }
    if (hasPrototypeKey(parsed)) return refusal(400, "bad-content", 'a key is "__proto__", which cannot be stored: rename it');
    const { data, error } = Json.safeParse(parsed);
    return (
      data ??
      refusal(
        400,
        "bad-content",
        `the JSON is not {"types":{name:{"kind":"text"|"array"|"map","value":...}}}: ${error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ")}`,
      )
    );
  } catch (error) {
    if (error instanceof SyntaxError) return refusal(400, "bad-content", "the body is no JSON");
    throw error;
  }
}

/** Undefined: the bytes are no UTF-8. They are never replaced by other characters without an error. */
function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return undefined;
  }
}

/** Checks level by level, so that the stack does not grow with the nesting. */
function isTooDeep(value: unknown): boolean {
  let [level, nesting]: [object[], number] = [[value].filter(isObject), 0];
  for (; level.length > 0 && nesting <= NESTING_MAX; nesting += 1) level = level.flatMap((one) => Object.values(one).filter(isObject));
  return nesting > NESTING_MAX;
}

/** Call for content that is not too deep. */
function hasPrototypeKey(value: unknown): boolean {
  return isObject(value) && (Object.hasOwn(value, "__proto__") || Object.values(value).some(hasPrototypeKey));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
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
