/**
 * Chunks in a JetStream object store whose writer died before it named them: no object's entry leads to them, so that
 * whoever lists or removes objects never comes upon them. They are removed once they are old. What is named must not go:
 * the store's listing may break off, so an object it does not show is asked for; and all is looked at twice.
 */

import { inTime } from "./in-time.ts";
import { objectNames, type ObjectBucket } from "./jetstream-object.ts";

const LISTING_MS_MAX = 15_000;

/** `ageMsMin`: more than whoever writes an object may take until it is named. Returns how many objects' chunks were removed. */
export async function removeUnnamedChunks(bucket: ObjectBucket, ageMsMin: number): Promise<number> {
  const old: string[] = [];
  for (const subject of await unnamedChunks(bucket)) if (await isOlder(subject, ageMsMin, bucket)) old.push(subject);
  if (old.length === 0) return 0;
  const again = await unnamedChunks(bucket);
  const left = old.filter((subject) => again.has(subject));
  for (const filter of left) await bucket.manager.streams.purge(`OBJ_${bucket.name}`, { filter });
  return left.length;
}

/** By their subjects: those of one object share one. */
async function unnamedChunks(bucket: ObjectBucket): Promise<Set<string>> {
  const { name, store, manager } = bucket;
  const chunks = `$O.${name}.C.`;
  // Before the entries: what one names afterwards is seen there.
  const { state } = await manager.streams.info(`OBJ_${name}`, { subjects_filter: `${chunks}>` });
  const unnamed = new Set(Object.keys(state.subjects ?? {}));
  const listed = new Set<string>();
  for (const object of await inTime(LISTING_MS_MAX, `listing ${name}`, store.list())) {
    listed.add(object.name);
    unnamed.delete(chunks + object.nuid);
  }
  for (const object of await objectNames(bucket)) {
    const info = listed.has(object) ? null : await store.info(object);
    if (info !== null && !info.deleted) unnamed.delete(chunks + info.nuid);
  }
  return unnamed;
}

/** By the last chunk there is. */
async function isOlder(subject: string, ageMsMin: number, { name, manager }: ObjectBucket): Promise<boolean> {
  const last = await manager.streams.getMessage(`OBJ_${name}`, { last_by_subj: subject });
  return last !== null && Date.now() - last.time.getTime() >= ageMsMin;
}
