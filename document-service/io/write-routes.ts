/**
 * What is to be written, as the one edit that it becomes: checked, where it is an edit already, so that no backend's
 * mistake gets into a room's log; made, where it is text or JSON. Nothing is written here: the gateway sends the edit
 * the way of every edit.
 */

import { z } from "zod";

import { type InternalAnswer, refusal } from "../../shared/io/internal-http.ts";
import type { Content, Made } from "../content.ts";
import type { Reading, Unread } from "../ports.ts";
import type { RoomQuestion, RoomRoute } from "./http.ts";
import { isRead, TOO_LARGE, unread } from "./unread.ts";

const DEFAULT_TEXT = "text";
const TYPES_MAX = 100;
/** Levels of arrays and objects in a body. What checks and makes content calls itself for each, and has a stack for about a thousand. */
const NESTING_MAX = 100;

const Json = z.object({
  types: z
    .record(
      z.string().min(1).max(128),
      z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("text"), value: z.string() }),
        z.object({ kind: z.literal("array"), value: z.array(z.json()) }),
        z.object({ kind: z.literal("map"), value: z.record(z.string(), z.json()) }),
      ]),
    )
    .refine((types) => Object.keys(types).length <= TYPES_MAX, `at most ${TYPES_MAX} shared types`),
});

export function writeRoutes(reading: Reading): RoomRoute[] {
  const edit = async (question: RoomQuestion): Promise<InternalAnswer> => {
    const body = await question.body();
    if (body === undefined) return TOO_LARGE;
    if (body.byteLength === 0) return refusal(400, "bad-content", "there is no content: send a body");
    const made = await madeOf(reading, question, body);
    if (!isRead(made)) return unread(made);
    if ("status" in made) return made;
    return made.kind === "edit"
      ? { status: 200, name: "edit", headers: { "content-type": "application/octet-stream" }, body: made.edit }
      : refusal(400, "bad-content", made.why);
  };
  return [{ method: "POST", place: "edit", answer: edit }];
}

function madeOf(reading: Reading, { header, query }: RoomQuestion, body: Uint8Array): Promise<Made | Unread> | InternalAnswer {
  switch (header("content-type").split(";")[0]!.trim()) {
    case "application/octet-stream":
      return reading.check(body);
    case "text/plain":
      return reading.make({ types: { [query.get("type") ?? DEFAULT_TEXT]: { kind: "text", value: new TextDecoder().decode(body) } } });
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

function jsonContent(body: Uint8Array): Content | InternalAnswer {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(body));
    if (isTooDeep(parsed)) {
      return refusal(
        400,
        "bad-content",
        `arrays and objects lie in each other more than ${NESTING_MAX} deep: make the content flatter, or send it as an edit (a Yjs update)`,
      );
    }
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

/** Looks at one level after the other: however deep it is, the stack is not. */
function isTooDeep(value: unknown): boolean {
  let [level, nesting]: [object[], number] = [[value].filter(isObject), 0];
  for (; level.length > 0 && nesting <= NESTING_MAX; nesting += 1) level = level.flatMap((one) => Object.values(one).filter(isObject));
  return nesting > NESTING_MAX;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
