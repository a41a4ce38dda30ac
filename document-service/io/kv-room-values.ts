/**
 * One JSON value a room in JetStream KV, replaced by revision. Reads go to the leader: a replica's old entry would
 * not fit the trimmed log.
 */

import type { JetStreamClient } from "@nats-io/jetstream";
import type { z } from "zod";

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { kvBucket } from "../../shared/io/copies.ts";
import { replace } from "../../shared/io/kv-replace.ts";
import type { Replaced } from "../../shared/lease.ts";
import { Undecodable } from "../../shared/undecodable.ts";

export type RoomValues<Value> = {
  /** `revision` 0: there is none yet. Throws `Undecodable` where there is one that cannot be understood. */
  read(room: RoomKey): Promise<{ readonly value: Value | undefined; readonly revision: number }>;
  write(room: RoomKey, value: Value, revision: number): Promise<Replaced>;
};

/** `bucket` is created where it is missing, with `replicas` copies. `what`: the values, for errors. */
export async function kvRoomValues<Value extends object>(
  jetstream: JetStreamClient,
  bucket: string,
  replicas: number,
  schema: z.ZodType<Value>,
  what: string,
): Promise<RoomValues<Value>> {
  const kv = await kvBucket(jetstream, bucket, { replicas });
  return {
    read: async (room) => {
      const entry = await kv.get(room);
      if (entry === null) return { value: undefined, revision: 0 };
      if (entry.operation !== "PUT") return { value: undefined, revision: entry.revision };
      const value = decodeJson(schema, entry.value);
      if (value === undefined) throw new Undecodable(`the ${what} of room ${room} does not decode: was it written by a newer version?`);
      return { value, revision: entry.revision };
    },
    write: async (room, value, revision) => {
      const bytes = encodeJson(value);
      const written = await replace(kv, room, bytes, revision);
      if (written !== undefined) return { kind: "written", revision: written };
      const found = await kv.get(room);
      // Found as we wrote it: an earlier try of this call, whose answer was lost.
      const isOurs = found !== null && Buffer.compare(found.value, bytes) === 0;
      return isOurs ? { kind: "written", revision: found.revision } : { kind: "superseded" };
    },
  };
}
