/**
 * Objects in a JetStream object store, read and removed with less than its client takes: that makes a consumer for each
 * read, which stays for minutes, so that thousands of reads meet the server's limit; and it leaves a note for each object
 * that was removed.
 */

import { JetStreamError, type JetStreamManager } from "@nats-io/jetstream";
import type { ObjectStore } from "@nats-io/obj";

import { Undecodable } from "../undecodable.ts";

const NOT_FOUND = 404;

export type ObjectBucket = { readonly name: string; readonly store: ObjectStore; readonly manager: JetStreamManager };

/** Undefined: it is not there. Throws `Undecodable` where a part of it is not. */
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
      if (!isNotFound(cause)) throw cause; // Else there are no more.
    }
  }
  const read = Buffer.concat(chunks);
  if (read.byteLength !== info.size) {
    throw new Undecodable(`${read.byteLength} of ${info.size} bytes of ${name} are there: a part was lost, or a replica lags`);
  }
  return new Uint8Array(read.buffer, read.byteOffset, read.byteLength);
}

/** The client names no class for what a server answers where there is no such message. */
function isNotFound(error: unknown): boolean {
  return error instanceof JetStreamError && "code" in error && error.code === NOT_FOUND;
}

/** For names that are never used again: nobody needs the note that there was one. */
export async function removeObject({ name: bucket, store, manager }: ObjectBucket, name: string): Promise<void> {
  await store.delete(name);
  await manager.streams.purge(`OBJ_${bucket}`, { filter: `$O.${bucket}.M.${token(name)}` });
}

/** Of all objects. */
export async function objectNames({ name: bucket, manager }: ObjectBucket): Promise<string[]> {
  const subjects = `$O.${bucket}.M.`;
  const { state } = await manager.streams.info(`OBJ_${bucket}`, { subjects_filter: `${subjects}>` });
  return Object.keys(state.subjects ?? {}).map((subject) => Buffer.from(subject.slice(subjects.length), "base64url").toString());
}

/** As the object store names its entries: base64 for URLs, padded. */
function token(name: string): string {
  return Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}
