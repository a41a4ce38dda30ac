/** What rooms and tenants store, as document services report over NATS. */

import { decodeJson } from "../../../shared/bus/json-messages.ts";
import { FullStorage, StoragePeaks } from "../../../shared/bus/storage-messages.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import { crashing, type NatsConnection } from "../../../shared/io/nats.ts";
import type { StorageReports } from "../../ports.ts";

export function natsStorageReports(nats: NatsConnection, subjects: Subjects): StorageReports {
  return {
    onFull: (receive) =>
      void nats.subscribe(subjects.storageFull, {
        callback: crashing((error, { data }) => {
          const full = error === null ? decodeJson(FullStorage, data) : undefined;
          if (full !== undefined) receive(full);
        }),
      }),
    onPeaks: (receive) =>
      void nats.subscribe(subjects.storagePeaks, {
        queue: "usage", // So that one gateway writes to Redis, and not all of them.
        callback: crashing((error, { data }) => {
          const peaks = error === null ? decodeJson(StoragePeaks, data) : undefined;
          if (peaks !== undefined) receive(peaks);
        }),
      }),
  };
}
