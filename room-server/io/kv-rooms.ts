/**
 * The rooms bucket: each room's owner, as a hint. Each write is conditional on the value that was read, so that a slow
 * owner never overwrites a later one. Few writes run at once: a server that takes over hundreds of rooms handles their
 * edits first, because gateways learn the owner from the log.
 */

import { jetstream } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import { decodeEntry, isRevisionConflict, passingEntries, removeEntry } from "../../shared/io/jetstream-stores.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { RoomEntries } from "../ports.ts";

const ATTEMPTS_MAX = 5;
const WRITES_AT_ONCE = 2;

/** Creates `bucket`, with `replicas` replicas, if it is missing. */
export async function kvRooms(nats: NatsConnection, bucket: string, replicas: number, server: ServerId): Promise<RoomEntries> {
  const kv = await passingEntries(jetstream(nats), bucket, replicas);
  return {
    find: async (room) => decodeEntry(RoomEntry, await kv.get(room)),
    announce: limitConcurrency(WRITES_AT_ONCE, (room: RoomKey, epoch: Epoch) =>
      writeUnlessOvertaken(kv, room, (current) => {
        const isThere = current?.owner === server && current.epoch === epoch;
        return isThere || (current?.epoch ?? 0) > epoch ? undefined : encodeJson({ owner: server, epoch } satisfies RoomEntry);
      }),
    ),
    withdraw: async (room, epoch) => {
      const found = await kv.get(room);
      const entry = decodeEntry(RoomEntry, found);
      if (found === null || entry?.owner !== server || entry.epoch > epoch) return;
      await removeEntry(kv, room, { previousSeq: found.revision }).catch(ignoreOvertaken);
    },
    forget: (room) => removeEntry(kv, room),
  };
}

async function writeUnlessOvertaken(
  kv: KV,
  room: RoomKey,
  decide: (current: RoomEntry | undefined) => Uint8Array | undefined,
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const found = await kv.get(room);
    const value = decide(decodeEntry(RoomEntry, found));
    if (value === undefined) return;
    const written = await kv.put(room, value, { previousSeq: found?.revision ?? 0 }).catch(ignoreOvertaken);
    if (written !== undefined) return;
  }
  throw new Error(`the entry of room ${room} changed ${ATTEMPTS_MAX} times while it was written`);
}

function ignoreOvertaken(error: unknown): undefined {
  if (isRevisionConflict(error)) return undefined;
  throw error;
}
