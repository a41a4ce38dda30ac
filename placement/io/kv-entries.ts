/** KV buckets with one entry per room, watched for changes. */

import { jetstream } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { z } from "zod";

import { decodeJson } from "../../shared/bus/json-messages.ts";
import { PlannedRoom, RoomEntry } from "../../shared/bus/placement-messages.ts";
import { parseRoomKey, type RoomKey } from "../../shared/ids.ts";
import { decodeEntry, passingEntries, removeEntry, writeUnlessNewer } from "../../shared/io/jetstream-stores.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { PlanEntries, RoomEntryFeed } from "../ports.ts";

/** `onEntry` resolves once every existing entry has been delivered. */
type WatchedBucket<Entry> = { readonly kv: KV; onEntry(receive: (room: RoomKey, entry: Entry | undefined) => void): Promise<void> };

const WATCH_AGAIN_MS = 1_000;

/** Creates `bucket`, with `replicas` replicas, if it is missing. An entry that does not decode counts as missing. */
export async function watchedBucket<Entry>(
  nats: NatsConnection,
  bucket: string,
  replicas: number,
  schema: z.ZodType<Entry>,
  log: Log,
): Promise<WatchedBucket<Entry>> {
  const kv = await passingEntries(jetstream(nats), bucket, replicas);
  const watch = async (receive: (room: RoomKey, entry: Entry | undefined) => void, receiveAllDelivered: () => void): Promise<void> => {
    const entries = await kv.watch();
    try {
      if ((await kv.status()).values === 0) receiveAllDelivered();
      for await (const { key, operation, value, delta, isUpdate } of entries) {
        const room = parseRoomKey(key);
        if (room !== undefined) receive(copyOf(room), operation === "PUT" ? decodeJson(schema, value) : undefined);
        if (delta === 0 || isUpdate) receiveAllDelivered();
      }
    } finally {
      entries.stop();
    }
  };
  return {
    kv,
    onEntry: (receive) =>
      new Promise((receiveAllDelivered) => {
        const begin = (): void => {
          const again = (cause?: unknown): void => {
            if (nats.isClosed() || nats.isDraining()) return;
            log.warn({ bucket, cause }, "the watch of a bucket ended; trying again");
            setTimeout(begin, WATCH_AGAIN_MS).unref();
          };
          watch(receive, receiveAllDelivered).then(again, again); // After success and after failure.
        };
        begin();
      }),
  };
}

/**
 * Copies the key: the client takes it as a substring of a subject, which would keep the complete subject in memory.
 * Room keys are ASCII.
 */
function copyOf(room: RoomKey): RoomKey {
  return Buffer.from(room, "latin1").toString("latin1") as RoomKey;
}

/** The rooms bucket, which room servers write. */
export function kvRooms({ kv, onEntry }: WatchedBucket<RoomEntry>): RoomEntryFeed {
  return {
    entry: async (room) => decodeEntry(RoomEntry, await kv.get(room)),
    onEntry,
  };
}

export function kvPlans({ kv, onEntry }: WatchedBucket<PlannedRoom>): PlanEntries {
  return {
    onEntry,
    write: async (room, planned) => {
      await writeUnlessNewer(kv, PlannedRoom, room, (stored) => ((stored?.generation ?? 0) > planned.generation ? undefined : planned));
    },
    remove: async (room, generation) => {
      const found = await kv.get(room);
      const stored = decodeEntry(PlannedRoom, found);
      if (found === null || stored === undefined) return true;
      return stored.generation <= generation && (await removeEntry(kv, room, { previousSeq: found.revision }));
    },
  };
}
