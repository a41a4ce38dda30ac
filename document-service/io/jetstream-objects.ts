/** Objects in a JetStream object store: nothing to set up, and backed up with everything else in NATS. */

import type { JetStreamClient } from "@nats-io/jetstream";

import { objectBucket } from "../../shared/io/copies.ts";
import { inTime } from "../../shared/io/in-time.ts";
import { objectNames, readObject, removeObject } from "../../shared/io/jetstream-object.ts";
import { removeUnnamedChunks } from "../../shared/io/unnamed-chunks.ts";
import type { ObjectStore } from "../ports.ts";

const CHUNK_BYTES = 512 * 1024;
/** NATS gone half-way through an object leaves the client waiting; then the caller tries again. */
const TRANSFER_MS_MAX = 15_000;
/** Of chunks without a name; no write takes so long. */
const ABANDONED_MS_MIN = 24 * 3_600_000;

/** `bucket` is created where it is missing, with `replicas` copies. */
export async function jetstreamObjects(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<ObjectStore> {
  const store = await objectBucket(jetstream, bucket, replicas);
  const objects = { name: bucket, store, manager: await jetstream.jetstreamManager() };
  return {
    write: async (name, bytes) => {
      await inTime(TRANSFER_MS_MAX, `writing ${name}`, store.putBlob({ name, options: { max_chunk_size: CHUNK_BYTES } }, bytes));
    },
    read: (name) => inTime(TRANSFER_MS_MAX, `reading ${name}`, readObject(objects, name)),
    list: () => objectNames(objects), // The store's own breaks off unsaid where NATS does, and what it does not show would count as lost.
    remove: (name) => removeObject(objects, name),
    sweep: () => removeUnnamedChunks(objects, ABANDONED_MS_MIN),
  };
}
