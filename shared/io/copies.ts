/**
 * How many servers keep a copy of what is in JetStream. Whoever makes a stream or a bucket says how many; one that was
 * made with fewer, by an earlier setting or a tool, is given more. Copies are never taken away here: a process that was
 * not told how many there are to be would take them from all others. That is for an operator (`nats stream update`).
 */

import { type JetStreamClient, type JetStreamManager, StorageType } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { type ObjectStore, Objm } from "@nats-io/obj";

/** `copies`: 1, 3 or 5. */
export async function ensureCopies(manager: JetStreamManager, stream: string, copies: number): Promise<void> {
  const { config } = await manager.streams.info(stream);
  if (config.num_replicas < copies) await manager.streams.update(stream, { num_replicas: copies });
}

/** Made where it is missing. Read from its leader: what a copy that lags tells would be written back over what is newer. */
export async function kvBucket(jetstream: JetStreamClient, bucket: string, options: { readonly replicas: number; readonly ttl?: number }): Promise<KV> {
  const kvm = new Kvm(jetstream);
  await kvm.create(bucket, options);
  await ensureCopies(await jetstream.jetstreamManager(), `KV_${bucket}`, options.replicas);
  return kvm.open(bucket, { allow_direct: false });
}

/** Made where it is missing. */
export async function objectBucket(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<ObjectStore> {
  const store = await new Objm(jetstream).create(bucket, { storage: StorageType.File, replicas });
  await ensureCopies(await jetstream.jetstreamManager(), `OBJ_${bucket}`, replicas);
  return store;
}
