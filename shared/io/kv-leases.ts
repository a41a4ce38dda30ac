/** Leases on log partitions, and their floors, in JetStream KV. */

import type { JetStreamClient } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import { z } from "zod";

import { decodeJson, encodeJson } from "../bus/json-messages.ts";
import type { Lease, Leases } from "../cluster/lease.ts";
import { existingBucket, kvBucket, replaceRevision } from "./jetstream-stores.ts";

/**
 * `said` is the sentinel. The name is an earlier word, and stays: the previous release reads only this name. During a
 * rolling upgrade its leaderboards would not find the sentinel of a lease with another name, and would not notice that
 * Redis has lost data. A new name would need two releases (`shared/bus/bus-version.ts`).
 */
export const StoredLease: z.ZodType<Lease> = z.object({
  holder: z.string(),
  floor: z.int().nonnegative(),
  said: z.object({ service: z.string(), number: z.int() }).optional(),
  last: z.object({ streamSeq: z.int().positive(), id: z.string() }).optional(),
});

/** Creates `bucket`, with `replicas` replicas, if it is missing. */
export async function kvLeases(streams: JetStreamClient, bucket: string, replicas: number): Promise<Leases> {
  return leasesIn(await kvBucket(streams, bucket, { replicas }));
}

/** For a process that may not create the bucket. Undefined: no process has created it yet. */
export async function existingLeases(streams: JetStreamClient, bucket: string): Promise<Leases | undefined> {
  const kv = await existingBucket(streams, bucket);
  return kv && leasesIn(kv);
}

function leasesIn(kv: KV): Leases {
  const read: Leases["read"] = async (partition) => {
    const entry = await kv.get(key(partition));
    if (entry === null) return { lease: undefined, revision: 0 };
    const lease = entry.operation === "PUT" ? decodeJson(StoredLease, entry.value) : undefined;
    return { lease, revision: entry.revision };
  };
  return {
    read,
    write: async (partition, lease, revision) => {
      const written = await replaceRevision(kv, key(partition), encodeJson(lease), revision);
      if (written !== undefined) return { kind: "written", revision: written };
      // Every run has a unique name, so a lease with this name is an earlier write of this process, whose reply was lost.
      // After the bucket lost its end, the revision of that write is lower than the refused one. The holder keeps the
      // partition then, because it may know more than the stores.
      const found = await read(partition);
      return found.lease?.holder === lease.holder ? { kind: "written", revision: found.revision } : { kind: "superseded" };
    },
  };
}

function key(partition: number): string {
  return `partition.${partition}`;
}
