/** FNV-1a, 0 to 2^32 - 1. Stored data and other processes depend on it. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/**
 * FNV-1a, then the finalizer of MurmurHash3: FNV alone gives close values to texts that differ only at the end. 0 to
 * 2^32 - 1.
 */
export function hash32(text: string): number {
  let hash = fnv1a(text);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** 0 to 2^31 - 1, which V8 stores without an object. Equal bytes have equal digests; others differ but for chance. */
export function digestOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < bytes.length; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193);
  return (hash ^ (hash >>> 16)) & 0x7fffffff;
}
