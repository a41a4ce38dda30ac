/** Checkpoints in JetStream KV. Reads go to the leader: a replica's old entry would not fit the trimmed log. */

import type { JetStreamClient } from "@nats-io/jetstream";

import { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { decodeJson, encodeJson } from "../../shared/bus/placement-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { kvBucket } from "../../shared/io/copies.ts";
import type { Checkpoints, StoredCheckpoint } from "../ports.ts";
import { replace } from "../../shared/io/kv-replace.ts";

/** `bucket` is created where it is missing, with `replicas` copies. */
export async function kvCheckpoints(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<Checkpoints> {
  const kv = await kvBucket(jetstream, bucket, { replicas });

  const read = async (room: RoomKey): Promise<StoredCheckpoint> => {
    const entry = await kv.get(room);
    if (entry === null) return { checkpoint: undefined, revision: 0 };
    if (entry.operation !== "PUT") return { checkpoint: undefined, revision: entry.revision };
    const checkpoint = decodeJson(Checkpoint, entry.value);
    if (checkpoint === undefined) throw new Error(`the checkpoint of room ${room} does not decode: was it written by a newer version?`);
    return { checkpoint, revision: entry.revision };
  };

  return {
    read,
    write: async (room, checkpoint, revision) => {
      const bytes = encodeJson(checkpoint);
      const written = await replace(kv, room, bytes, revision);
      if (written !== undefined) return { kind: "written", revision: written };
      const found = await kv.get(room);
      // Found as we wrote it: an earlier try of this call, whose answer was lost.
      const isOurs = found !== null && Buffer.compare(found.value, bytes) === 0;
      return isOurs ? { kind: "written", revision: found.revision } : { kind: "superseded" };
    },
  };
}
