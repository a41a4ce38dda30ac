/** What gateways send to the owner of a room, as it arrives. The subscription comes back by itself after a lost line. */

import { decodeToOwner } from "../../shared/bus/envelope.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { flushTogether, type NatsConnection, onceHeard, subscribeLightly } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Inbox } from "../ports.ts";

export function natsInbox(nats: NatsConnection, subjects: Subjects, { log, metrics }: { log: Log; metrics: RoomServerMetrics }): Inbox {
  const flush = flushTogether(nats);
  return {
    subscribe: async (room, receive) => {
      const subscription = subscribeLightly(nats, subjects.editsIn(room), (error, msg) => {
        if (error !== null)
          return log.error({ room, error }, "NATS does not let this server receive a room's edits: check its permissions");
        const message = decodeToOwner(msg.data);
        if (message === undefined) return metrics.messagesUnread.inc();
        receive(message, msg.data.byteLength);
      });
      await onceHeard(subscription, flush);
      return {
        isOpen: () => !subscription.isClosed(),
        close: async () => {
          if (!subscription.isClosed() && !subscription.isDraining()) await subscription.drain();
        },
      };
    },
  };
}
