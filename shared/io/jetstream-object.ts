/**
 * Reads and removes objects of a JetStream object store at lower cost than its client, which makes a consumer per read
 * (thousands of reads meet the server's limit) and leaves a marker per removed object.
 */

import { JetStreamError, type JetStreamManager } from "@nats-io/jetstream";
import type { ObjectStore } from "@nats-io/obj";
import { UndecodableEntry } from "../bus/json-messages.ts";
import { rethrowMistake } from "../time/pause.ts";

/** Throws when the work takes longer than `msMax`; the work itself continues. */
export function withTimeout<Value>(msMax: number, what: string, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${msMax} ms: is NATS reachable?`)), msMax);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

const NOT_FOUND = 404;

type ObjectBucket = { readonly name: string; readonly store: ObjectStore; readonly manager: JetStreamManager };

/** Undefined: no such object. Throws `UndecodableEntry` if a part is missing. */
export async function readObject({ name: bucket, store, manager }: ObjectBucket, name: string): Promise<Uint8Array | undefined> {
  const info = await store.info(name);
  if (info === null || info.deleted) return undefined;
  const chunks: Uint8Array[] = [];
  for (let [after, before] = [0, -1]; chunks.length < info.chunks && chunks.length > before;) {
    before = chunks.length;
    const asked = { seq: after + 1, batch: info.chunks - chunks.length, next_by_subj: `$O.${bucket}.C.${info.nuid}` };
    try {
      for await (const { seq, data } of await manager.direct.getBatch(`OBJ_${bucket}`, asked)) {
        chunks.push(data);
        after = seq;
      }
    } catch (cause) {
      if (!isNotFound(cause)) throw cause; // "Not found" means that no message follows.
    }
  }
  const read = Buffer.concat(chunks);
  if (read.byteLength !== info.size) {
    const found = await store.info(name);
    if (found === null || found.deleted) return undefined; // Removed while it was read.
    throw new UndecodableEntry(`${read.byteLength} of ${info.size} bytes of ${name} are there: a part was lost, or a replica lags`);
  }
  return new Uint8Array(read.buffer, read.byteOffset, read.byteLength);
}

/** The NATS client exports no class for the answer that a message does not exist. */
function isNotFound(error: unknown): boolean {
  return error instanceof JetStreamError && "code" in error && error.code === NOT_FOUND;
}

/**
 * For names that are never reused: no deletion marker is needed, which a store without storage would refuse. The entry
 * goes first, so that no entry names missing chunks. Chunks that are left after a crash are old soon, and swept.
 */
export async function removeObject({ name: bucket, store, manager }: ObjectBucket, name: string): Promise<void> {
  const info = await store.info(name);
  if (info === null) return;
  await manager.streams.purge(`OBJ_${bucket}`, { filter: `$O.${bucket}.M.${token(name)}` });
  await manager.streams.purge(`OBJ_${bucket}`, { filter: `$O.${bucket}.C.${info.nuid}` });
}

/**
 * All objects with their sizes. The store's own list ends silently when NATS disappears, and takes long for many objects:
 * the size of an object that it omits is undefined.
 */
export async function objectSizes(bucket: ObjectBucket): Promise<Map<string, number | undefined>> {
  const sizes = new Map<string, number | undefined>((await objectNames(bucket)).map((name) => [name, undefined]));
  try {
    for (const { name, size } of await withTimeout(SIZES_MS_MAX, `listing ${bucket.name}`, bucket.store.list()))
      if (sizes.has(name)) sizes.set(name, size);
  } catch (error) {
    rethrowMistake(error); // NATS does not answer in time. The names are complete.
  }
  return sizes;
}

/** Names of all objects. */
export async function objectNames({ name: bucket, manager }: ObjectBucket): Promise<string[]> {
  const subjects = `$O.${bucket}.M.`;
  const { state } = await manager.streams.info(`OBJ_${bucket}`, { subjects_filter: `${subjects}>` });
  return Object.keys(state.subjects ?? {}).map((subject) => Buffer.from(subject.slice(subjects.length), "base64url").toString());
}

/** The name of an entry in the object store: base64 for URLs, padded. */
function token(name: string): string {
  return Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}

const LISTING_MS_MAX = 15_000;
/** A million objects take about a minute. */
const SIZES_MS_MAX = 120_000;

/**
 * Removes chunks whose writer died before it wrote the object's entry, once they are old. No listing shows such chunks.
 * A chunk of an existing object must stay. A listing may break off, so each missing object is looked up separately, and
 * everything is checked twice. `ageMsMin`: longer than a writer may take. Returns the number of objects.
 */
export async function removeOrphanChunks(bucket: ObjectBucket, ageMsMin: number): Promise<number> {
  const old: string[] = [];
  for (const subject of await unnamedChunks(bucket)) if (await isOlder(subject, ageMsMin, bucket)) old.push(subject);
  if (old.length === 0) return 0;
  const again = await unnamedChunks(bucket);
  const left = old.filter((subject) => again.has(subject));
  for (const filter of left) await bucket.manager.streams.purge(`OBJ_${bucket.name}`, { filter });
  return left.length;
}

/** By subject; the chunks of one object share one. */
async function unnamedChunks(bucket: ObjectBucket): Promise<Set<string>> {
  const { name, store, manager } = bucket;
  const chunks = `$O.${name}.C.`;
  // Read before the entries, so that an entry that is written in between protects its chunks.
  const { state } = await manager.streams.info(`OBJ_${name}`, { subjects_filter: `${chunks}>` });
  const unnamed = new Set(Object.keys(state.subjects ?? {}));
  const listed = new Set<string>();
  for (const object of await withTimeout(LISTING_MS_MAX, `listing ${name}`, store.list())) {
    listed.add(object.name);
    unnamed.delete(chunks + object.nuid);
  }
  for (const object of await objectNames(bucket)) {
    const info = listed.has(object) ? null : await store.info(object);
    if (info !== null && !info.deleted) unnamed.delete(chunks + info.nuid);
  }
  return unnamed;
}

/** The age of an object is the age of its last chunk. */
async function isOlder(subject: string, ageMsMin: number, { name, manager }: ObjectBucket): Promise<boolean> {
  const last = await manager.streams.getMessage(`OBJ_${name}`, { last_by_subj: subject });
  return last !== null && Date.now() - last.time.getTime() >= ageMsMin;
}
