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

/** An empty value removes the field. `value` is copied. */
export function withField(fields: PresenceFieldList, name: string, value: Uint8Array): PresenceFieldList {
  const others = fields.filter((field) => field.name !== name);
  if (value.byteLength > 0) return [...others, { name, value: value.slice() }];
  return others.length === 0 ? NO_FIELDS : others;
}
