/**
 * How many servers keep a copy of what is in JetStream. Whoever makes a stream or a bucket says how many; one that was
 * made with fewer, by an earlier setting or a tool, is given more. Copies are never taken away here: a process that was
 * not told how many there are to be would take them from all others. That is for an operator (`nats stream update`).
 */

import { setTimeout } from "node:timers/promises";

import { JetStreamApiError, type JetStreamClient, type JetStreamManager, StorageType } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { type ObjectStore, Objm } from "@nats-io/obj";
import { RequestError, TimeoutError } from "nats";

import { SettingError } from "../config.ts";
import { StartError } from "../start-error.ts";

/** A single nats-server is to keep several copies; a cluster has no server for one of them. */
const TOO_FEW_SERVERS: readonly number[] = [10_074, 10_005];
/** No server for a copy, where one has just come; temporarily unavailable; not found, of a stream that was made a moment ago. */
const UNSETTLED: readonly number[] = [10_005, 10_008, 10_059];
const SETTLED_MS_MAX = 20_000;
const RETRY_MS = 200;

/** `copies`: 1, 3 or 5. */
export async function ensureCopies(manager: JetStreamManager, stream: string, copies: number): Promise<void> {
  const { config } = await manager.streams.info(stream);
  if (config.num_replicas < copies) await manager.streams.update(stream, { num_replicas: copies });
}

/**
 * Tries again while JetStream cannot say yet: it elects, or another process is just making the same. A whole system that
 * is started at once would else lose processes to that.
 */
export async function onceSettled<Made>(make: () => Promise<Made>): Promise<Made> {
  for (const until = performance.now() + SETTLED_MS_MAX; ;) {
    try {
      return await make();
    } catch (error) {
      if (!isUnsettled(error) || performance.now() > until) throw refusalOf(error) ?? error;
    }
    await setTimeout(RETRY_MS);
  }
}

/** Undefined: it is not about what NATS is or was asked for. The client exports no class to tell the first by. */
function refusalOf(cause: unknown): SettingError | StartError | undefined {
  if (cause instanceof Error && cause.name === "JetStreamNotEnabled") {
    return new StartError(
      "NATS runs without JetStream, which keeps the log: give nats-server a jetstream section with a store_dir (or start it with -js -sd folder), and its account JetStream",
      { cause },
    );
  }
  if (cause instanceof JetStreamApiError && TOO_FEW_SERVERS.includes(cause.code)) {
    return new SettingError(
      "COROOM_LOG_REPLICAS asks for more copies than there are nats-servers to keep them: a single one keeps 1, a cluster of three keeps 3; set it to that for every role, or see to it that all servers of the cluster run",
      { cause },
    );
  }
  return undefined;
}

/** JetStream did not answer, or could not say yet. */
export function isUnsettled(error: unknown): boolean {
  return (
    error instanceof TimeoutError || error instanceof RequestError || (error instanceof JetStreamApiError && UNSETTLED.includes(error.code))
  );
}

/** Made where it is missing. Read from its leader: what a copy that lags tells would be written back over what is newer. */
export function kvBucket(
  jetstream: JetStreamClient,
  bucket: string,
  options: { readonly replicas: number; readonly ttl?: number },
): Promise<KV> {
  return onceSettled(async () => {
    const kvm = new Kvm(jetstream);
    await kvm.create(bucket, options);
    await ensureCopies(await jetstream.jetstreamManager(), `KV_${bucket}`, options.replicas);
    return kvm.open(bucket, { allow_direct: false });
  });
}

/** Made where it is missing. */
export function objectBucket(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<ObjectStore> {
  return onceSettled(async () => {
    const store = await new Objm(jetstream).create(bucket, { storage: StorageType.File, replicas });
    await ensureCopies(await jetstream.jetstreamManager(), `OBJ_${bucket}`, replicas);
    return store;
  });
}
