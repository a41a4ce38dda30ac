/** Reports of stored bytes over NATS, and the question of an operator. */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { FullStorage, StorageQuestion, TenantCounts } from "../../shared/bus/storage-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { subscribeJson } from "../../shared/io/nats-json.ts";
import { type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { StorageBus, StorageQuestions } from "../ports.ts";

export function natsStorage(nats: NatsConnection, subjects: Subjects): StorageBus {
  return {
    publishCounts: (counts) => publish(nats, subjects.storageCounts, encodeJson(counts)),
    publishFull: (full) => publish(nats, subjects.storageFull, encodeJson(full)),
    publishPeaks: (peaks) => publish(nats, subjects.storagePeaks, encodeJson(peaks)),
    onCounts: (receive) => void subscribeJson(nats, subjects.storageCounts, TenantCounts, receive),
    onFull: (receive) => void subscribeJson(nats, subjects.storageFull, FullStorage, receive),
  };
}

export function natsStorageQuestions(nats: NatsConnection, subjects: Subjects, log: Log): StorageQuestions {
  return {
    onQuestion: (answer) =>
      void subscribeJson(nats, subjects.askStorage, StorageQuestion, ({ room }, message) => {
        void answer(room)
          .then((found) => found !== undefined && message.respond(encodeJson(found)))
          .catch((cause: unknown) => {
            rethrowMistake(cause);
            log.warn({ room, cause }, "what a room stores could not be read");
          });
      }),
  };
}
