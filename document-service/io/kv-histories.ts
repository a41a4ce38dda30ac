/** What is kept of rooms' pasts, by name, in JetStream KV. */

import type { JetStreamClient } from "@nats-io/jetstream";

import { History, NO_HISTORY } from "../past/history.ts";
import type { Histories } from "../ports.ts";
import { kvRoomValues } from "./kv-room-values.ts";

export async function kvHistories(jetstream: JetStreamClient, bucket: string, replicas: number): Promise<Histories> {
  const values = await kvRoomValues<History>(jetstream, bucket, replicas, History, "history");
  return {
    read: async (room) => {
      const { value: history = NO_HISTORY, revision } = await values.read(room);
      return { history, revision };
    },
    write: values.write,
  };
}
