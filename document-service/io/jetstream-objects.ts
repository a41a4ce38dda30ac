/** Objects in a JetStream object store: nothing to set up, and backed up with everything else in NATS. */

import type { JetStreamClient } from "@nats-io/jetstream";

import { objectBucket } from "../../shared/io/copies.ts";
import { inTime } from "../../shared/io/in-time.ts";
import type { ObjectStore } from "../ports.ts";

const CHUNK_BYTES = 512 * 1024;
/** NATS gone half-way through an object leaves the client waiting; then the caller tries again. */
const TRANSFER_MS_MAX = 15_000;

/** `bucket` is created where it is missing, with `replicas` copies. */
export async function jetstreamObjects(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<ObjectStore> {
  const store = await objectBucket(jetstream, bucket, replicas);
  const manager = await jetstream.jetstreamManager();

  /** The client's own way makes a consumer for each read, which stay for minutes: thousands of reads meet the server's limit. */
  async function read(name: string): Promise<Uint8Array | undefined> {
    const info = await store.info(name);
    if (info === null || info.deleted) return undefined;
    const chunks: Uint8Array[] = [];
    for (let [after, before] = [0, -1]; chunks.length < info.chunks && chunks.length > before; ) {
      before = chunks.length;
      const asked = { seq: after + 1, batch: info.chunks - chunks.length, next_by_subj: `$O.${bucket}.C.${info.nuid}` };
      for await (const { seq, data } of await manager.direct.getBatch(`OBJ_${bucket}`, asked)) {
        chunks.push(data);
        after = seq;
      }
    }
    const read = Buffer.concat(chunks);
    if (read.byteLength !== info.size) throw new Error(`${read.byteLength} of ${info.size} bytes of ${name} are there: a part was lost, or a replica lags`);
    return new Uint8Array(read.buffer, read.byteOffset, read.byteLength);
  }

  return {
    write: async (name, bytes) => {
      await inTime(TRANSFER_MS_MAX, `writing ${name}`, store.putBlob({ name, options: { max_chunk_size: CHUNK_BYTES } }, bytes));
    },
    read: (name) => inTime(TRANSFER_MS_MAX, `reading ${name}`, read(name)),
    list: async () => (await inTime(TRANSFER_MS_MAX, `listing ${bucket}`, store.list())).filter(({ deleted }) => !deleted).map(({ name }) => name),
    remove: async (name) => {
      await store.delete(name);
      // What is left is a note that the object was deleted. Names are never used again: nobody needs it.
      await manager.streams.purge(`OBJ_${bucket}`, { filter: `$O.${bucket}.M.${token(name)}` });
    },
  };
}

/** As the object store names its entries: base64 for URLs, padded. */
function token(name: string): string {
  return Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}
