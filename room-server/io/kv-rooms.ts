/**
 * The rooms bucket: who owns what, as a hint for those who look for an owner. Each write is conditional on what
 * was read, so that a slow owner never writes over a later one. Few are written at a time: whoever takes over hundreds of
 * rooms has their edits to see to first, and their gateways know it from the log.
 */

import { jetstream } from "@nats-io/jetstream";
import type { KV, KvEntry } from "@nats-io/kv";

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import { kvBucket } from "../../shared/io/copies.ts";
import { inTurn } from "../../shared/in-turn.ts";
import { isOvertaken } from "../../shared/io/kv-replace.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { RoomEntries } from "../ports.ts";

const ATTEMPTS_MAX = 5;
const WRITES_AT_ONCE = 2;

/** `bucket` is created where it is missing, with `replicas` copies. */
export async function kvRooms(nats: NatsConnection, bucket: string, replicas: number, server: ServerId): Promise<RoomEntries> {
  const kv = await kvBucket(jetstream(nats), bucket, { replicas });
  return {
    find: async (room) => entryIn(await kv.get(room)),
    announce: inTurn(WRITES_AT_ONCE, (room: RoomKey, epoch: Epoch) =>
      writeUnlessOvertaken(kv, room, (current) => {
        const isThere = current?.owner === server && current.epoch === epoch;
        return isThere || (current?.epoch ?? 0) > epoch ? undefined : encodeJson({ owner: server, epoch } satisfies RoomEntry);
      }),
    ),
    withdraw: async (room) => {
      const found = await kv.get(room);
      if (found === null || entryIn(found)?.owner !== server) return;
      await kv.delete(room, { previousSeq: found.revision }).catch(ignoreOvertaken);
    },
    forget: (room) => kv.purge(room),
  };
}

async function writeUnlessOvertaken(
  kv: KV,
  room: RoomKey,
  decide: (current: RoomEntry | undefined) => Uint8Array | undefined,
): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const found = await kv.get(room);
    const value = decide(entryIn(found));
    if (value === undefined) return;
    const written = await kv.put(room, value, { previousSeq: found?.revision ?? 0 }).catch(ignoreOvertaken);
    if (written !== undefined) return;
  }
  throw new Error(`the entry of room ${room} changed ${ATTEMPTS_MAX} times while it was written`);
}

function entryIn(found: KvEntry | null): RoomEntry | undefined {
  return found === null || found.operation !== "PUT" ? undefined : decodeJson(RoomEntry, found.value);
}

function ignoreOvertaken(error: unknown): undefined {
  if (isOvertaken(error)) return undefined;
  throw error;
}
