/**
 * What one call of a command is about (which room, which user, which host) is read from its flags alone: a variable of
 * that name may be set for a process, and mean something else there.
 */

import type { Settings } from "../shared/config.ts";

type OfOneCall<S extends Settings> = { readonly [Key in keyof S]: S[Key] & { readonly flagOnly: true } };

export function ofOneCall<const S extends Settings>(settings: S): OfOneCall<S> {
  return Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, { ...setting, flagOnly: true }])) as OfOneCall<S>;
}
