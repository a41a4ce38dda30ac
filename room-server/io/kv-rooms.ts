/**
 * The rooms bucket: each room's owner, as a hint. Each write is conditional on the value that was read, so that a slow
 * owner never overwrites a later one. Few writes run at once: a server that takes over hundreds of rooms handles their
 * edits first, because gateways learn the owner from the log.
 */

import { jetstream } from "@nats-io/jetstream";

import { RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import { decodeEntry, passingEntries, removeEntry, writeUnlessNewer } from "../../shared/io/jetstream-stores.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { RoomEntries } from "../ports.ts";

const WRITES_AT_ONCE = 2;

/** Creates `bucket`, with `replicas` replicas, if it is missing. */
export async function kvRooms(nats: NatsConnection, bucket: string, replicas: number, server: ServerId): Promise<RoomEntries> {
  const kv = await passingEntries(jetstream(nats), bucket, replicas);
  return {
    find: async (room) => decodeEntry(RoomEntry, await kv.get(room)),
    announce: limitConcurrency(WRITES_AT_ONCE, (room: RoomKey, epoch: Epoch) =>
      writeUnlessNewer(kv, RoomEntry, room, (current) => {
        const isThere = current?.owner === server && current.epoch === epoch;
        return isThere || (current?.epoch ?? 0) > epoch ? undefined : { owner: server, epoch };
      }),
    ),
    withdraw: async (room, epoch) => {
      const found = await kv.get(room);
      const entry = decodeEntry(RoomEntry, found);
      if (found === null || entry?.owner !== server || entry.epoch > epoch) return;
      await removeEntry(kv, room, { previousSeq: found.revision });
    },
    forget: async (room) => void (await removeEntry(kv, room)),
  };
}
