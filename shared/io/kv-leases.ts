/** The leases on parts of the log, and their floors, in JetStream KV. */

import type { JetStreamClient } from "@nats-io/jetstream";
import { z } from "zod";

import { decodeJson, encodeJson } from "../bus/json-messages.ts";
import type { Lease, Leases } from "../lease.ts";
import { kvBucket } from "./copies.ts";
import { replace } from "./kv-replace.ts";

const StoredLease: z.ZodType<Lease> = z.object({
  holder: z.string(),
  floor: z.int().nonnegative(),
  said: z.object({ service: z.string(), number: z.int() }).optional(),
});

/** `bucket` is created where it is missing, with `replicas` copies. */
export async function kvLeases(streams: JetStreamClient, bucket: string, replicas: number): Promise<Leases> {
  const kv = await kvBucket(streams, bucket, { replicas });
  const read: Leases["read"] = async (partition) => {
    const entry = await kv.get(key(partition));
    if (entry === null) return { lease: undefined, revision: 0 };
    const lease = entry.operation === "PUT" ? decodeJson(StoredLease, entry.value) : undefined;
    return { lease, revision: entry.revision };
  };
  return {
    read,
    write: async (partition, lease, revision) => {
      const written = await replace(kv, key(partition), encodeJson(lease), revision);
      if (written !== undefined) return { kind: "written", revision: written };
      // Every run has a name of its own: a lease in it is an earlier write of ours, whose answer was lost.
      const found = await read(partition);
      return found.lease?.holder === lease.holder ? { kind: "written", revision: found.revision } : { kind: "superseded" };
    },
  };
}

function key(partition: number): string {
  return `partition.${partition}`;
}
