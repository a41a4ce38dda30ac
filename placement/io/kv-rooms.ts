/** Reads the rooms bucket, which room servers write. */

import { Kvm } from "@nats-io/kv";

import { decodeJson, RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Rooms } from "../ports.ts";

/** `bucket` is created where it is missing, with `replicas` copies. */
export async function kvRooms(nats: NatsConnection, bucket: string, replicas: number): Promise<Rooms> {
  const kv = await new Kvm(nats).create(bucket, { replicas });
  return {
    entry: async (room) => {
      const entry = await kv.get(room);
      return entry === null || entry.operation !== "PUT" ? undefined : decodeJson(RoomEntry, entry.value);
    },
  };
}
