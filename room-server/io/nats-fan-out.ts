/**
 * Announcements about rooms of other servers. JetStream adds each record's stream sequence as a header when it
 * republishes the record.
 */

import { decodeFromOwner } from "../../shared/bus/envelope.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { flushTogether, type NatsConnection, onceSubscribed, subscribeLightly } from "../../shared/io/nats.ts";
import type { FanOut } from "../ports.ts";

const STREAM_SEQUENCE = "Nats-Sequence";

export function natsFanOut(nats: NatsConnection, subjects: Subjects): FanOut {
  const flush = flushTogether(nats);
  const gapReceivers: (() => void)[] = [];
  void (async () => {
    for await (const { type } of nats.status()) if (type === "reconnect") for (const receive of gapReceivers) receive();
  })();
  return {
    subscribe: async (room, receive) => {
      const subscription = subscribeLightly(nats, subjects.editsOut(room), (error, msg) => {
        if (error !== null) return;
        // The receiver copies the bytes that it keeps, because the network's buffer must not be kept.
        const streamSeq = Number(msg.headers?.get(STREAM_SEQUENCE) ?? 0);
        const announcement = decodeFromOwner(streamSeq > 0 ? new Uint8Array(msg.data) : msg.data);
        if (announcement?.kind === "beacon") receive({ kind: "beacon", head: announcement.head });
        else if (announcement?.kind === "deleted") receive(announcement);
        else if ((announcement?.kind === "epoch" || announcement?.kind === "edits") && streamSeq > 0)
          receive({ record: announcement, streamSeq });
      });
      await onceSubscribed(subscription, flush);
      return {
        isOpen: () => !subscription.isClosed(),
        close: async () => subscription.unsubscribe(),
      };
    },
    onGap: (receive) => void gapReceivers.push(receive),
  };
}
