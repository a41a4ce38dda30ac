/**
 * Writes an object and reads it back, before any checkpoint or history names it. An object that differs is never
 * used.
 */

import type { Digest, ObjectStore } from "./ports.ts";

export type Written = { readonly object: string; readonly bytes: number; readonly sha256: string };

/** Undefined: the object differs from the written bytes, and is not used. */
export async function writeVerified(store: ObjectStore, digest: Digest, object: string, bytes: Uint8Array): Promise<Written | undefined> {
  const sha256 = digest(bytes);
  await store.write(object, bytes);
  const found = await store.read(object);
  return found !== undefined && digest(found) === sha256 ? { object, bytes: bytes.byteLength, sha256 } : undefined;
}

/** Undefined: the object is missing, or differs from the written bytes. */
export async function readVerified(
  store: ObjectStore,
  digest: Digest,
  { object, sha256 }: Omit<Written, "bytes">,
): Promise<Uint8Array | undefined> {
  const bytes = await store.read(object);
  return bytes !== undefined && digest(bytes) === sha256 ? bytes : undefined;
}
