/**
 * Opens the object store that the settings name. A JetStream object store needs no set-up, and its backup is part of
 * the backup of NATS.
 */

import type { JetStreamClient } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import { objectSizes, readObject, removeObject, withTimeout, removeOrphanChunks } from "../../shared/io/jetstream-object.ts";
import { objectBucket } from "../../shared/io/jetstream-stores.ts";
import { refuseIncompleteStore, type StoreSettings } from "../config.ts";
import type { ObjectStore } from "../ports.ts";
import { folderObjects } from "./folder-objects.ts";
import type { PostgresConnection, PostgresUse } from "./postgres-connection.ts";
import { postgresObjects } from "./postgres-objects.ts";
import { s3Objects } from "./s3-objects.ts";

type StoreConfig = StoreSettings & { readonly environment: string; readonly logReplicas: number };

export async function openStores(
  streams: JetStreamClient,
  subjects: Subjects,
  config: StoreConfig,
  receiveUse?: (use: PostgresUse) => void,
): Promise<{ snapshots: ObjectStore; history: ObjectStore }> {
  refuseIncompleteStore(config);
  let postgres: PostgresConnection | undefined;
  const open = async (bucket: string): Promise<ObjectStore> => {
    switch (config.snapshotsStore) {
      case "jetstream":
        return jetstreamObjects(streams, bucket, config.logReplicas);
      case "folder":
        return folderObjects(`${config.snapshotsFolder}/${bucket}`);
      case "s3":
        return s3Objects(config, `${bucket}/`);
      case "postgres":
        postgres ??= await (await import("./postgres-connection.ts")).connectPostgres(config.postgresUrl, receiveUse); // Other stores do not load its library.
        return postgresObjects(postgres, bucket);
    }
  };
  return {
    snapshots: withSharedLists(await open(subjects.snapshotsBucket)),
    history: withSharedLists(await open(subjects.historyObjectsBucket)),
  };
}

/**
 * Calls that come while the store is listed receive the same list. All partitions of a process list the complete store at
 * the same times, and a list of a million objects takes a minute and hundreds of MB.
 */
export function withSharedLists(store: ObjectStore): ObjectStore {
  let running: ReturnType<ObjectStore["list"]> | undefined;
  return { ...store, list: () => (running ??= store.list().finally(() => (running = undefined))) };
}

const CHUNK_BYTES = 512 * 1024;
/** When NATS is lost during a transfer, its client waits forever. This limit lets the caller try again. */
const TRANSFER_MS_MAX = 15_000;
/** Minimum age of chunks without a name. No write takes so long. */
const ABANDONED_MS_MIN = 24 * 3_600_000;

/** Creates `bucket` if it is missing, with `replicas` copies. */
export async function jetstreamObjects(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<ObjectStore> {
  const store = await objectBucket(jetstream, bucket, replicas);
  const objects = { name: bucket, store, manager: await jetstream.jetstreamManager() };
  return {
    write: async (name, bytes) => {
      await withTimeout(TRANSFER_MS_MAX, `writing ${name}`, store.putBlob({ name, options: { max_chunk_size: CHUNK_BYTES } }, bytes));
    },
    read: (name) => withTimeout(TRANSFER_MS_MAX, `reading ${name}`, readObject(objects, name)),
    list: () => objectSizes(objects),
    remove: (name) => removeObject(objects, name),
    sweep: () => removeOrphanChunks(objects, ABANDONED_MS_MIN),
  };
}
