/** What rooms and tenants store, as document services report over NATS. */

import { FullStorage, StoragePeaks } from "../../../shared/bus/storage-messages.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import { subscribeJson } from "../../../shared/io/nats-json.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import type { StorageReports } from "../../ports.ts";

export function natsStorageReports(nats: NatsConnection, subjects: Subjects): StorageReports {
  return {
    onFull: (receive) => void subscribeJson(nats, subjects.storageFull, FullStorage, receive),
    // The queue lets one gateway write to Redis, and not all of them.
    onPeaks: (receive) => void subscribeJson(nats, subjects.storagePeaks, StoragePeaks, receive, { queue: "usage" }),
  };
}
