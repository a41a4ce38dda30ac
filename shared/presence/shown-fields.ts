/**
 * What one participant shows of itself, few fields by name. A list that is replaced as a whole, and one empty one for
 * all who show nothing: there are very many of them, and a map for each would weigh more than all else kept of them.
 */

import type { PresenceField } from "../wire/presence.ts";

export type PresenceFieldList = readonly PresenceField[];

export const NO_FIELDS: PresenceFieldList = [];

export function valueOf(fields: PresenceFieldList, name: string): Uint8Array | undefined {
  return fields.find((field) => field.name === name)?.value;
}

/** An empty value takes the field back. `value` is lent: it is copied. */
export function withField(fields: PresenceFieldList, name: string, value: Uint8Array): PresenceFieldList {
  const others = fields.filter((field) => field.name !== name);
  if (value.byteLength > 0) return [...others, { name, value: value.slice() }];
  return others.length === 0 ? NO_FIELDS : others;
}
