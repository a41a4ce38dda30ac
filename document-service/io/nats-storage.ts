/** Reports of stored bytes over NATS, and the question of an operator. */

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { FullStorage, StorageQuestion, TenantCounts } from "../../shared/bus/storage-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { crashing, type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { StorageBus, StorageQuestions } from "../ports.ts";

export function natsStorage(nats: NatsConnection, subjects: Subjects): StorageBus {
  const subscribe = (subject: string, receive: (data: Uint8Array) => void): void =>
    void nats.subscribe(subject, { callback: crashing((error, { data }) => void (error === null && receive(data))) });
  return {
    publishCounts: (counts) => publish(nats, subjects.storageCounts, encodeJson(counts)),
    publishFull: (full) => publish(nats, subjects.storageFull, encodeJson(full)),
    publishPeaks: (peaks) => publish(nats, subjects.storagePeaks, encodeJson(peaks)),
    onCounts: (receive) =>
      subscribe(subjects.storageCounts, (data) => {
        const counts = decodeJson(TenantCounts, data);
        if (counts !== undefined) receive(counts);
      }),
    onFull: (receive) =>
      subscribe(subjects.storageFull, (data) => {
        const full = decodeJson(FullStorage, data);
        if (full !== undefined) receive(full);
      }),
  };
}

export function natsStorageQuestions(nats: NatsConnection, subjects: Subjects, log: Log): StorageQuestions {
  return {
    onQuestion: (answer) =>
      void nats.subscribe(subjects.askStorage, {
        callback: crashing((error, message) => {
          const asked = error === null ? decodeJson(StorageQuestion, message.data) : undefined;
          if (asked === undefined) return;
          void answer(asked.room)
            .then((found) => found !== undefined && message.respond(encodeJson(found)))
            .catch((cause: unknown) => {
              rethrowMistake(cause);
              log.warn({ room: asked.room, cause }, "what a room stores could not be read");
            });
        }),
      }),
  };
}
