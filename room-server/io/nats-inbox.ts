/**
 * What gateways send to the owner of a room, as it arrives: edits and presence, on one subject. The subscription comes
 * back by itself after a lost line.
 */

import { decodeToOwner } from "../../shared/bus/envelope.ts";
import { decodePresenceToOwner, isPresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { flushTogether, type NatsConnection, onceHeard, subscribeLightly } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Inbox, Receiver, Subscription } from "../ports.ts";

type InboxDeps = { readonly log: Log; readonly metrics: RoomServerMetrics };

export function natsInbox(nats: NatsConnection, subjects: Subjects, deps: InboxDeps): Inbox {
  const flush = flushTogether(nats);
  return {
    subscribe: async (room, receiver) => {
      const subscription = subscribeLightly(nats, subjects.toOwner(room), (error, msg) => {
        if (error === null) receive(msg.data, receiver, deps);
        else refused(room, error, deps);
      });
      await onceHeard(subscription, flush);
      return new HeardRoom(subscription);
    },
  };
}

function receive(bytes: Uint8Array, receiver: Receiver, { metrics }: InboxDeps): void {
  if (isPresenceToOwner(bytes)) {
    const message = decodePresenceToOwner(bytes);
    if (message === undefined) metrics.messagesUnread.inc();
    else receiver.receivePresence(message);
  } else {
    const message = decodeToOwner(bytes);
    if (message === undefined) metrics.messagesUnread.inc();
    else receiver.receiveMessage(message, bytes.byteLength);
  }
}

function refused(room: RoomKey, error: Error, { log }: InboxDeps): void {
  log.error({ room, error }, "NATS does not let this server receive what is said to a room's owner: check its permissions");
}

/** There are very many: an object with functions of its own would weigh as much as all else that is kept of it here. */
class HeardRoom implements Subscription {
  readonly #subscription: ReturnType<typeof subscribeLightly>;

  constructor(subscription: ReturnType<typeof subscribeLightly>) {
    this.#subscription = subscription;
  }

  isOpen(): boolean {
    return !this.#subscription.isClosed();
  }

  async close(): Promise<void> {
    if (!this.#subscription.isClosed() && !this.#subscription.isDraining()) await this.#subscription.drain();
  }
}
