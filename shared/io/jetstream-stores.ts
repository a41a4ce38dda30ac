/**
 * Creates streams, KV buckets and object buckets with the configured number of replicas. A stream or bucket with fewer
 * replicas gets more. Replicas are never removed here, because a process with another setting would remove them for all
 * processes: an operator removes them (`nats stream update`).
 */

import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  StorageType,
  type StreamInfo,
  type StreamInfoRequestOptions,
} from "@nats-io/jetstream";
import { type KV, type KvEntry, Kvm } from "@nats-io/kv";
import { type ObjectStore, Objm } from "@nats-io/obj";
import { RequestError, TimeoutError } from "nats";
import type { z } from "zod";

import { decodeJson, encodeJson } from "../bus/json-messages.ts";
import { SettingError } from "../settings/settings.ts";
import { StartError } from "../process/lifecycle.ts";
import type { Clock } from "../time/clock.ts";
import { pause } from "../time/pause.ts";
import { isNoAnswer } from "./nats-json.ts";
import { systemClock } from "./system-clock.ts";

/** A single nats-server cannot keep several replicas. A cluster may lack a server for one. */
const TOO_FEW_SERVERS: readonly number[] = [10_074, 10_005];
const STREAM_NOT_FOUND = 10_059;
/** No server for a replica yet; temporarily unavailable; not found, for a stream made a moment ago. */
const UNSETTLED: readonly number[] = [10_005, 10_008, STREAM_NOT_FOUND];
/**
 * JetStream's errors without storage: insufficient resources (the limit of the server or account), insufficient storage,
 * and a store that failed (the limit of the stream).
 */
export const STORAGE_FULL: ReadonlySet<number | undefined> = new Set([10_023, 10_047, 10_077]);
/** The stream's file store failed, for example on a full disk; nats-server gives no further code. */
const STREAM_NOT_CREATED = 10_049;
/** Storage counts too: a process that searches for the log's automatic limit can reserve all of it for a moment. */
const SETTLED_MS_MAX = 20_000;
const RETRY_MS = 200;

/** `replicas`: 1, 3 or 5. */
export async function ensureReplicas(manager: JetStreamManager, stream: string, copies: number): Promise<void> {
  const { config } = await manager.streams.info(stream);
  if (config.num_replicas < copies) await manager.streams.update(stream, { num_replicas: copies });
}

/**
 * Retries while JetStream elects a leader, another process creates the same stream or bucket, or storage is reserved for
 * a moment. Without retries, processes would fail when a system is started all at once.
 */
export async function retryUntilSettled<Made>(make: () => Promise<Made>, clock: Clock = systemClock): Promise<Made> {
  for (const startedAt = clock.now(); ;) {
    try {
      return await make();
    } catch (error) {
      const mayEnd = isUnsettled(error) || isStorageFull(error) || (error instanceof SettingError && isStorageFull(error.cause));
      if (!mayEnd || clock.now() - startedAt > SETTLED_MS_MAX) throw refusalOf(error) ?? error;
    }
    await pause(clock, RETRY_MS);
  }
}

/** Undefined: neither NATS nor the request caused the error. The client exports no class for it. */
export function refusalOf(cause: unknown): SettingError | StartError | undefined {
  if (cause instanceof Error && cause.name === "JetStreamNotEnabled") {
    return new StartError(
      "JetStream is not enabled in NATS, and Coroom stores the log there. Add a jetstream section with a store_dir to nats-server's configuration (or start it with -js -sd FOLDER), and enable JetStream for the account",
      { cause },
    );
  }
  if (cause instanceof JetStreamApiError && TOO_FEW_SERVERS.includes(cause.code)) {
    return new SettingError(
      "COROOM_LOG_REPLICAS is larger than the number of nats-servers that run. Set it to 1 for a single server, or to 3 for a cluster of three, with the same value for every role, or start the missing servers",
      { cause },
    );
  }
  if (isStorageFull(cause)) {
    return new StartError(
      `JetStream has no storage left (${cause.message}). Free space on the disks of the nats-servers, or raise max_file_store or the limits of the account`,
      { cause },
    );
  }
  if (isStreamMissing(cause)) {
    return new StartError("the streams of this environment do not exist yet. Start room servers, document services and placement", {
      cause,
    });
  }
  if (cause instanceof JetStreamApiError && cause.code === STREAM_NOT_CREATED) {
    return new StartError(
      `nats-server cannot create a stream (${cause.message}). Free space on its disk, make its store_dir writable, and read its log`,
      { cause },
    );
  }
  return undefined;
}

export function isStreamMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND;
}

/** Undefined: there is no such stream. */
export async function findStream(
  manager: JetStreamManager,
  name: string,
  options?: Partial<StreamInfoRequestOptions>,
): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name, options);
  } catch (error) {
    if (!isStreamMissing(error)) throw error;
    return undefined;
  }
}

export function isStorageFull(error: unknown): error is JetStreamApiError {
  return error instanceof JetStreamApiError && STORAGE_FULL.has(error.code);
}

/** JetStream did not answer, or could not decide yet. */
export function isUnsettled(error: unknown): boolean {
  return (
    error instanceof TimeoutError || error instanceof RequestError || (error instanceof JetStreamApiError && UNSETTLED.includes(error.code))
  );
}

/** For a process that cannot start: the error, or one that names the remedy if NATS or JetStream did not answer. */
export function startFailure(cause: unknown): unknown {
  if (!isNoAnswer(cause) && !isUnsettled(cause)) return cause;
  return new StartError(
    `NATS did not answer in time while this process started (${(cause as Error).message}). Check that a majority of the nats-servers run and reach each other, and that their disks are neither full nor slow (\`coroom doctor\`). Then start this process again`,
    { cause },
  );
}

/** Creates the bucket if it is missing. Reads come from its leader, because a stale value would be written back over a newer one. */
export function kvBucket(
  jetstream: JetStreamClient,
  bucket: string,
  options: { readonly replicas: number; readonly ttl?: number },
): Promise<KV> {
  return retryUntilSettled(async () => {
    const kvm = new Kvm(jetstream);
    await kvm.create(bucket, options);
    await ensureReplicas(await jetstream.jetstreamManager(), `KV_${bucket}`, options.replicas);
    return kvm.open(bucket, { allow_direct: false });
  });
}

/** A bucket with one entry per room in use, whose entries `removeEntry` removes. */
export async function passingEntries(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<KV> {
  const kv = await kvBucket(jetstream, bucket, { replicas });
  await retryUntilSettled(async () => {
    const { streams } = await jetstream.jetstreamManager();
    const { config } = await streams.info(`KV_${bucket}`);
    if (config.allow_msg_ttl !== true) await streams.update(`KV_${bucket}`, { allow_msg_ttl: true });
  });
  return kv;
}

/**
 * Removes an entry. Watches receive a marker, which itself disappears after `ttl`: otherwise one would stay for each room
 * that was ever in use. A watch that is interrupted for longer than `ttl` may miss the removal. With `previousSeq` an
 * entry that changed after this revision stays: false.
 */
export async function removeEntry(
  kv: KV,
  key: string,
  { previousSeq, ttl = "24h" }: { readonly previousSeq?: number; readonly ttl?: string } = {},
): Promise<boolean> {
  try {
    await kv.purge(key, { ttl, ...(previousSeq !== undefined && { previousSeq }) });
    return true;
  } catch (error) {
    if (!isRevisionConflict(error)) throw error;
    return false;
  }
}

/** For a process that may not create the bucket. Undefined: no process has created it yet. Reads come from its leader. */
export async function existingBucket(jetstream: JetStreamClient, bucket: string): Promise<KV | undefined> {
  const stream = await findStream(await jetstream.jetstreamManager(), `KV_${bucket}`); // Opening alone would not notice.
  return stream && new Kvm(jetstream).open(bucket, { allow_direct: false });
}

/** Undefined: there is no entry, it was removed, or it does not decode. */
export function decodeEntry<Entry>(schema: z.ZodType<Entry>, entry: KvEntry | null | undefined): Entry | undefined {
  return entry?.operation === "PUT" ? decodeJson(schema, entry.value) : undefined;
}

/** Creates the bucket if missing. */
export function objectBucket(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<ObjectStore> {
  return retryUntilSettled(async () => {
    const store = await new Objm(jetstream).create(bucket, { storage: StorageType.File, replicas });
    await ensureReplicas(await jetstream.jetstreamManager(), `OBJ_${bucket}`, replicas);
    return store;
  });
}

/** The second is a cluster's answer while another write to the entry or room is in flight. */
const WRONG_LAST_SEQUENCE: readonly number[] = [10_071, 10_164];

/** Nothing was written: the entry changed since it was read. */
function isRevisionConflict(error: unknown): boolean {
  return error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.includes(error.code);
}

/**
 * Compare-and-set: replaces exactly `revision` (0: none) and returns the new one. Undefined: the entry has another
 * revision. So a deposed process cannot overwrite its successor.
 */
export async function replaceRevision(kv: Pick<KV, "put">, key: string, value: Uint8Array, revision: number): Promise<number | undefined> {
  try {
    return await kv.put(key, value, { previousSeq: revision });
  } catch (error) {
    if (isRevisionConflict(error)) return undefined;
    throw new Error(`it is not known whether ${key} was written`, { cause: error });
  }
}

const ATTEMPTS_MAX = 5;

/**
 * Writes the entry that `decide` returns for the stored one, and replaces exactly that one: a process that was paused may
 * write late. Undefined: the stored entry is newer, and stays.
 */
export async function writeUnlessNewer<Entry extends object>(
  kv: Pick<KV, "put" | "get">,
  schema: z.ZodType<Entry>,
  key: string,
  decide: (stored: Entry | undefined) => Entry | undefined,
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const found = await kv.get(key);
    const entry = decide(decodeEntry(schema, found));
    if (entry === undefined) return;
    if ((await replaceRevision(kv, key, encodeJson(entry), found?.revision ?? 0)) !== undefined) return;
  }
  throw new Error(`the entry ${key} changed ${ATTEMPTS_MAX} times while it was written`);
}

/** `isReplaced`: a later entry was read, so the refused one is not there. Otherwise it may be: the read was too old to show it. */
export type EntryWrite =
  { readonly kind: "written"; readonly revision: number } | { readonly kind: "superseded"; readonly isReplaced: boolean };

/**
 * As `replaceRevision`, but the refusal of a repeat counts as written: an earlier try of this call wrote the entry, and
 * its answer was lost. `isOurs` recognises that entry. A former leader may answer the read with the entry that was to be
 * replaced, or with an earlier one: `docs/adr/0036-reads-may-be-stale.md`.
 */
export async function replaceEntry(
  kv: Pick<KV, "put" | "get">,
  key: string,
  value: Uint8Array,
  revision: number,
  isOurs: (found: KvEntry) => boolean,
): Promise<EntryWrite> {
  const written = await replaceRevision(kv, key, value, revision);
  if (written !== undefined) return { kind: "written", revision: written };
  const found = await kv.get(key);
  if (found === null || found.revision <= revision) return { kind: "superseded", isReplaced: false };
  return isOurs(found) ? { kind: "written", revision: found.revision } : { kind: "superseded", isReplaced: true };
}
