/** The checkpoints and histories of rooms in JetStream KV: one JSON value per room, replaced by revision. */

import type { JetStreamClient } from "@nats-io/jetstream";
import type { z } from "zod";

import { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { decodeJson, encodeJson, UndecodableEntry } from "../../shared/bus/json-messages.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { kvBucket, replaceEntry, retryUntilSettled } from "../../shared/io/jetstream-stores.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { History, NO_HISTORY } from "../history/history.ts";
import type { Checkpoints, Histories } from "../ports.ts";

export async function kvHistories(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<Histories> {
  const values = await kvRoomValues<History>(jetstream, bucket, replicas, History, "history");
  return {
    read: async (room) => {
      const { value: history = NO_HISTORY, revision } = await values.read(room);
      return { history, revision };
    },
    write: values.write,
    storeDate: await storeDateOf(jetstream, `KV_${bucket}`),
  };
}

/** Asks NATS once, and continues with the steady clock. That clock may stop while the machine sleeps. */
async function storeDateOf(jetstream: JetStreamClient, stream: string): Promise<() => UnixMillis> {
  const { streams } = await jetstream.jetstreamManager();
  const { ts } = await retryUntilSettled(() => streams.info(stream)); // A cluster may not have settled yet.
  const [date, since] = [Date.parse(String(ts)) || 0, systemClock.now()];
  return () => (date + systemClock.now() - since) as UnixMillis;
}

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

/** Reads go to the leader, because an old entry from a replica would not match the trimmed log. */
type RoomValues<Value> = {
  /** `revision` 0: there is no value. Throws `UndecodableEntry` if there is one that does not decode. */
  read(room: RoomKey): Promise<{ readonly value: Value | undefined; readonly revision: number }>;
  write(room: RoomKey, value: Value, revision: number): Promise<LeaseWrite>;
};

/** Creates `bucket` if it is missing, with `replicas` copies. `what`: names the values in errors. */
async function kvRoomValues<Value extends object>(
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
      if (value === undefined)
        throw new UndecodableEntry(`the ${what} of room ${room} does not decode: check whether a newer version wrote it`);
      return { value, revision: entry.revision };
    },
    write: (room, value, revision) => {
      const bytes = encodeJson(value);
      return replaceEntry(kv, room, bytes, revision, (found) => Buffer.compare(found.value, bytes) === 0);
    },
  };
}
