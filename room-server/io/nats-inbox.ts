/**
 * Receives the messages to a room's owner: edits, and the question of a gateway that does not know the owner for
 * presence. The NATS client renews the subscription after a reconnect. A gateway of this process passes edits without
 * NATS.
 */

import { decodeToOwner, type ToOwner } from "../../shared/bus/envelope.ts";
import { decodePresenceToOwner, isPresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { LocalOwner, LocalOwners } from "../../shared/bus/local-owners.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Epoch, RoomKey } from "../../shared/ids.ts";
import { flushTogether, type NatsConnection, lightSubscriber, onceSubscribed } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { RoomInbox, Receiver, Subscription } from "../ports.ts";

/** Keyed by the subscription's number. */
type Receivers = Map<number, Receiver>;
type NatsSubscription = ReturnType<ReturnType<typeof lightSubscriber>>;

type InboxDeps = { readonly log: Log; readonly metrics: RoomServerMetrics; readonly localOwners?: RoomsOfProcess | undefined };
type RoomsOfProcess = Pick<LocalOwners, "add" | "remove">;

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
      const roomSubscription = new RoomSubscription(subscribe(subjects.toOwner(room)), receivers, localOwner(room, receiver, deps));
      receivers.set(roomSubscription.id, receiver);
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

/** Undefined: no gateway runs in this process. */
function localOwner(room: RoomKey, receiver: Receiver, deps: InboxDeps): RoomOfProcess | undefined {
  return deps.localOwners === undefined ? undefined : new RoomOfProcess(room, receiver, deps.localOwners);
}

class RoomOfProcess implements LocalOwner {
  readonly #room: RoomKey;
  readonly #receiver: Receiver;
  readonly #owners: RoomsOfProcess;

  constructor(room: RoomKey, receiver: Receiver, owners: RoomsOfProcess) {
    this.#room = room;
    this.#receiver = receiver;
    this.#owners = owners;
    owners.add(room, this);
  }

  get openEpoch(): Epoch | undefined {
    return this.#receiver.openEpoch;
  }

  receiveMessage(message: ToOwner): void {
    this.#receiver.receiveMessage(message, 0); // An open owner takes messages at once. It holds none whose bytes would count.
  }

  forget(): void {
    this.#owners.remove(this.#room, this);
  }
}

/** A server has very many of these. An object with its own closures would double this file's memory per room. */
class RoomSubscription implements Subscription {
  readonly #subscription: NatsSubscription;
  readonly #receivers: Receivers;
  readonly #local: RoomOfProcess | undefined;

  constructor(subscription: NatsSubscription, receivers: Receivers, local: RoomOfProcess | undefined) {
    this.#subscription = subscription;
    this.#receivers = receivers;
    this.#local = local;
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
    this.#receivers.delete(this.id);
    this.#local?.forget();
  }

  async close(): Promise<void> {
    this.#local?.forget();
    if (!this.#subscription.isClosed() && !this.#subscription.isDraining()) await this.#subscription.drain();
    this.forget();
  }
}
