/** Checkpoints in JetStream KV. */

import type { JetStreamClient } from "@nats-io/jetstream";

import { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import type { Checkpoints } from "../ports.ts";
import { kvRoomValues } from "./kv-room-values.ts";

export async function kvCheckpoints(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<Checkpoints> {
  const values = await kvRoomValues<CheckpointEntry>(jetstream, bucket, replicas, CheckpointEntry, "checkpoint");
  return {
    read: async (room) => {
      const { value: checkpoint, revision } = await values.read(room);
      return { checkpoint, revision };
    },
    write: values.write,
  };
}
