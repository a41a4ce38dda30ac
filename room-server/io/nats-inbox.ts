/**
 * Receives what is sent to a room's owner: edits, and the question of a gateway that does not know who owns the room's
 * presence. The client renews the subscription after a reconnect.
 */

import { decodeToOwner } from "../../shared/bus/envelope.ts";
import { decodePresenceToOwner, isPresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { flushTogether, type NatsConnection, lightSubscriber, onceSubscribed } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { RoomInbox, Receiver, Subscription } from "../ports.ts";

/** Keyed by the subscription's number. */
type Receivers = Map<number, Receiver>;
type NatsSubscription = ReturnType<ReturnType<typeof lightSubscriber>>;

type InboxDeps = { readonly log: Log; readonly metrics: RoomServerMetrics };

export function natsInbox(nats: NatsConnection, subjects: Subjects, deps: InboxDeps): RoomInbox {
  const flush = flushTogether(nats);
  const receivers: Receivers = new Map();
  const subscribe = lightSubscriber(nats, (error, msg) => {
    if (error !== null)
      return deps.log.error({ error }, "NATS does not let this server receive messages to room owners: check its permissions");
    const receiver = receivers.get(msg.sid);
    if (receiver !== undefined) receive(msg.data, receiver, deps);
  });
  return {
    subscribe: async (room, receiver) => {
      const roomSubscription = new RoomSubscription(subscribe(subjects.toOwner(room)), receivers);
      receivers.set(roomSubscription.id, receiver);
      try {
        await onceSubscribed(roomSubscription, flush);
      } catch (error) {
        receivers.delete(roomSubscription.id);
        throw error;
      }
      return roomSubscription;
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

/** There are very many: an object with its own closures would double this file's memory per room. */
class RoomSubscription implements Subscription {
  readonly #subscription: NatsSubscription;
  readonly #receivers: Receivers;

  constructor(subscription: NatsSubscription, receivers: Receivers) {
    this.#subscription = subscription;
    this.#receivers = receivers;
  }

  get id(): number {
    return this.#subscription.getID();
  }

  isOpen(): boolean {
    return !this.#subscription.isClosed();
  }

  unsubscribe(): void {
    this.#subscription.unsubscribe();
  }

  async close(): Promise<void> {
    if (!this.#subscription.isClosed() && !this.#subscription.isDraining()) await this.#subscription.drain();
    this.#receivers.delete(this.id);
  }
}
