/**
 * The presence fields of one participant: few fields by name. The list is replaced as a unit, and all participants
 * without fields share one empty list. There are very many participants, and a map for each would use more memory than
 * everything else.
 */

import type { PresenceField } from "../wire/presence.ts";

export type PresenceFieldList = readonly PresenceField[];

export const NO_FIELDS: PresenceFieldList = [];

export function valueOf(fields: PresenceFieldList, name: string): Uint8Array | undefined {
  return fields.find((field) => field.name === name)?.value;
}

/** For several look-ups in one list. A `valueOf` for each of n fields takes n² steps, and a client chooses n. */
export function valuesByName(fields: PresenceFieldList): Map<string, Uint8Array> {
  const values = new Map<string, Uint8Array>();
  for (const { name, value } of fields) values.set(name, value);
  return values;
}

/** An empty value removes the field. Of a name that is given twice, the last value counts. The values are copied. */
export function withFields(fields: PresenceFieldList, changed: readonly PresenceField[]): PresenceFieldList {
  const latest = valuesByName(changed);
  const next = fields.filter(({ name }) => !latest.has(name));
  for (const [name, value] of latest) if (value.byteLength > 0) next.push({ name, value: value.slice() });
  return next.length === 0 ? NO_FIELDS : next;
}
