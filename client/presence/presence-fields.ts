/** What an application shows of itself, as the fields that go over the wire. */

import { assert } from "../../shared/assert.ts";
import { encodePoint, encodeRectangle, encodeSpan, type Point, type Rectangle, type Span } from "../../shared/wire/positions.ts";
import { CURSOR, type PresenceField, SELECTION, VIEWPORT } from "../../shared/wire/presence.ts";
import { encodeValue } from "./presence-values.ts";

/**
 * Positions are in units of the application, rounded to whole ones. Whatever else is named is the application's
 * own, as JSON. Null takes a field back; undefined leaves it as it is.
 */
export type Presence = {
  readonly cursor?: Point | null | undefined;
  readonly selection?: Span | null | undefined;
  readonly viewport?: Rectangle | null | undefined;
  readonly [own: string]: unknown;
};

const NAME_LENGTH_MAX = 64;
const NOTHING = new Uint8Array();

export function fieldsOf({ cursor, selection, viewport, ...own }: Presence): PresenceField[] {
  const fields: PresenceField[] = [];
  if (cursor !== undefined) {
    fields.push({ name: CURSOR, value: cursor === null ? NOTHING : encodePoint({ x: Math.round(cursor.x), y: Math.round(cursor.y) }) });
  }
  if (selection !== undefined) fields.push({ name: SELECTION, value: selection === null ? NOTHING : encodeSpan(selection) });
  if (viewport !== undefined) fields.push({ name: VIEWPORT, value: viewport === null ? NOTHING : encodeRectangle(roundedOut(viewport)) });
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined) fields.push(value === null ? { name, value: NOTHING } : ownField(name, value));
  }
  return fields;
}

/** What is no value of JSON takes the field back. */
export function ownField(name: string, value: unknown): PresenceField {
  assert(
    name.length >= 1 && name.length <= NAME_LENGTH_MAX && name.isWellFormed() && !name.startsWith("@"),
    `a presence field is named by 1 to ${NAME_LENGTH_MAX} characters, the first no @: ${JSON.stringify(name)} is not`,
  );
  return { name, value: encodeValue(value) };
}

/** The whole units that the rectangle touches. */
function roundedOut({ x, y, width, height }: Rectangle): Rectangle {
  const [left, top] = [Math.floor(x), Math.floor(y)];
  return { x: left, y: top, width: Math.ceil(x + width) - left, height: Math.ceil(y + height) - top };
}
