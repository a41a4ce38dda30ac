/**
 * Reads the JSON of a new document, in the form in which documents are read. Runs in a thread as content.ts does: a body
 * of 1 MB may have 300,000 values, and the service's own thread must renew its leases. Each check is linear in the body,
 * and a refusal has a limited length.
 */

import { parseJson } from "../shared/parse-json.ts";
import { STRUCTS_MAX } from "../shared/yjs/checked-update.ts";
import { type DocumentContent, editOf, type Made } from "./content.ts";

/** Characters of a shared type's name. */
export const TYPE_NAME_CHARACTERS_MAX = 128;
const TYPES_MAX = 100;
/**
 * Levels of arrays and objects in a body. The recursive code that checks and converts content has stack for about a
 * thousand.
 */
const NESTING_MAX = 100;
/** The values of shared types lie in three objects: the body, `types`, and the type. */
const VALUE_NESTING = 3;
const FORM = '{"types":{name:{"kind":"text"|"array"|"map","value":...}}}';

type JsonObject = Readonly<Record<string, unknown>>;
/** A name of a shared type in an error. */
const SHOWN_CHARACTERS_MAX = 40;

export function editOfJson(body: Uint8Array): Made {
  const content = jsonContent(body);
  return typeof content === "string" ? { kind: "bad-content", why: content } : editOf(content);
}

/** Undefined: the bytes are no UTF-8. They are never replaced by other characters without an error. */
export function decodeUtf8(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return undefined;
  }
}

export const NO_UTF8 = "the body is no UTF-8: convert it before you send it";

/** A text: why the body is refused. */
function jsonContent(body: Uint8Array): DocumentContent | string {
  const text = decodeUtf8(body);
  if (text === undefined) return NO_UTF8;
  const parsed = parseJson(text);
  if (parsed === undefined) return "the body is no JSON";
  const limit = exceededLimit(parsed);
  if (limit !== undefined) return limit;
  if (hasPrototypeKey(parsed)) return 'a key is "__proto__", which cannot be stored: rename it';
  const { types } = isJsonObject(parsed) ? parsed : {};
  if (!isJsonObject(types)) return `the JSON is not ${FORM}: types is no object`;
  const named = Object.entries(types);
  if (named.length > TYPES_MAX) return `the JSON has ${named.length} shared types: send at most ${TYPES_MAX}`;
  for (const [name, type] of named) {
    const why = refusalOf(name, type);
    if (why !== undefined) return `the JSON is not ${FORM}: types.${name.slice(0, SHOWN_CHARACTERS_MAX)} ${why}`;
  }
  return { types: types as DocumentContent["types"] };
}

function refusalOf(name: string, type: unknown): string | undefined {
  if (name.length < 1 || name.length > TYPE_NAME_CHARACTERS_MAX) return `has no name of 1 to ${TYPE_NAME_CHARACTERS_MAX} characters`;
  const { kind, value } = isJsonObject(type) ? type : {};
  switch (kind) {
    case "text":
      return typeof value === "string" ? undefined : "is a text, and its value is no string";
    case "array":
      return Array.isArray(value) ? undefined : "is an array, and its value is none";
    case "map":
      return isJsonObject(value) ? undefined : "is a map, and its value is no object";
    default:
      return "has none of these kinds";
  }
}

/**
 * The limit that the content exceeds. Checks level by level, so that the stack does not grow with the nesting. The structs
 * of the edit are counted before it is made, because Yjs takes seconds for hundreds of thousands: at least one for each
 * array or object in a value, and for each key of an object.
 */
function exceededLimit(content: unknown): string | undefined {
  let [level, structs] = [[content].filter(isObject), 0];
  for (let nesting = 0; level.length > 0; nesting += 1) {
    if (nesting > NESTING_MAX - 1)
      return `arrays and objects lie in each other more than ${NESTING_MAX} deep: make the content flatter, or send it as an edit (a Yjs update)`;
    const inner: object[] = [];
    for (const one of level) {
      const values = Object.values(one) as unknown[];
      const objects = values.filter(isObject);
      for (const object of objects) inner.push(object);
      if (nesting >= VALUE_NESTING) structs += Array.isArray(one) ? objects.length : values.length;
    }
    if (structs > STRUCTS_MAX)
      return `it has more than ${STRUCTS_MAX} arrays, objects and keys: write the first part, then the rest as edits (Yjs updates)`;
    level = inner;
  }
  return undefined;
}

/** Call for content that is not too deep. */
function hasPrototypeKey(value: unknown): boolean {
  return isObject(value) && (Object.hasOwn(value, "__proto__") || Object.values(value).some(hasPrototypeKey));
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value) && !Array.isArray(value);
}
