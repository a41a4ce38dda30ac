/**
 * Receives the messages to a room's owner: edits, and the question of a gateway that does not know the owner for
 * presence. The NATS client renews the subscription after a reconnect. A gateway of this process passes edits without
 * NATS.
 */

import { decodeToOwner, type LocalOwners } from "../../shared/bus/envelope.ts";
import { decodePresenceToOwner, isPresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { flushTogether, type NatsConnection, lightSubscriber, onceSubscribed } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { RoomInbox, Receiver, Subscription } from "../ports.ts";

type NatsSubscription = ReturnType<ReturnType<typeof lightSubscriber>>;

/** `bySubscription`: keyed by the subscription's number. `localOwners`: undefined if no gateway runs in this process. */
type Receivers = { readonly bySubscription: Map<number, Receiver>; readonly localOwners: LocalOwners | undefined };

type InboxDeps = { readonly log: Log; readonly metrics: RoomServerMetrics; readonly localOwners?: LocalOwners | undefined };

export function natsInbox(nats: NatsConnection, subjects: Subjects, { log, metrics, localOwners }: InboxDeps): RoomInbox {
  const flush = flushTogether(nats);
  const receivers: Receivers = { bySubscription: new Map(), localOwners };
  const subscribe = lightSubscriber(nats, (error, msg) => {
    if (error !== null) return log.error({ error }, "NATS does not let this server receive messages to room owners: check its permissions");
    const receiver = receivers.bySubscription.get(msg.sid);
    if (receiver !== undefined) receive(msg.data, receiver, metrics);
  });
  return {
    subscribe: async (room, receiver) => {
      const roomSubscription = new RoomSubscription(room, subscribe(subjects.toOwner(room)), receivers);
      receivers.bySubscription.set(roomSubscription.id, receiver);
      localOwners?.set(room, receiver);
      try {
        await onceSubscribed(roomSubscription, flush);
      } catch (error) {
        roomSubscription.forget();
        throw error;
      }
      return roomSubscription;
    },
  };
}

function receive(bytes: Uint8Array, receiver: Receiver, metrics: RoomServerMetrics): void {
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

/** A server has very many of these. An object with its own closures would double this file's memory per room. */
class RoomSubscription implements Subscription {
  readonly #room: RoomKey;
  readonly #subscription: NatsSubscription;
  readonly #receivers: Receivers;

  constructor(room: RoomKey, subscription: NatsSubscription, receivers: Receivers) {
    this.#room = room;
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

  forget(): void {
    this.#endLocalMessages();
    this.#receivers.bySubscription.delete(this.id);
  }

  async close(): Promise<void> {
    this.#endLocalMessages();
    if (!this.#subscription.isClosed() && !this.#subscription.isDraining()) await this.#subscription.drain();
    this.forget();
  }

  /** The entry of a later owner of the room stays. */
  #endLocalMessages(): void {
    const { bySubscription, localOwners } = this.#receivers;
    const owner = localOwners?.get(this.#room);
    if (owner !== undefined && owner === bySubscription.get(this.id)) localOwners?.delete(this.#room);
  }
}
