/** Checkpoints as the document service writes them. `bucket` is created where it is missing, with `replicas` copies. */

import { jetstream } from "@nats-io/jetstream";

import { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import { kvBucket } from "../../shared/io/copies.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Checkpoints } from "../ports.ts";

export async function kvCheckpoints(nats: NatsConnection, bucket: string, replicas: number): Promise<Checkpoints> {
  // Read from the leader: a replica's old checkpoint would not fit the log, which is trimmed behind the newest.
  const kv = await kvBucket(jetstream(nats), bucket, { replicas });
  return {
    newest: async (room) => {
      const entry = await kv.get(room);
      if (entry === null || entry.operation !== "PUT") return undefined;
      const checkpoint = decodeJson(CheckpointEntry, entry.value);
      if (checkpoint === undefined) throw new Error(`the checkpoint of room ${room} does not decode: was it written by a newer version?`);
      return "deleted" in checkpoint ? "deleted" : checkpoint;
    },
  };
}
