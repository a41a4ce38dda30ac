/**
 * Messages about rooms over core NATS, fire and forget in both directions. Answers of owners, and NATS's "no
 * responders", arrive on one subscription for all rooms, with the room in the subject.
 *
 * A gateway follows thousands of quiet rooms. A quiet room holds only its subscription and its name. Everything else is
 * created when a message arrives.
 */

import type { Msg, Subscription } from "nats";

import { encodeToOwner, type LocalOwners, type ToOwner } from "../../../shared/bus/envelope.ts";
import { roomOfSubject, type Subjects } from "../../../shared/bus/subjects.ts";
import type { Epoch, RoomKey, GatewayId } from "../../../shared/ids.ts";
import { untilTurnEnds } from "../../../shared/io/event-loop.ts";
import { crashing, flushTogether, lightSubscriber, type NatsConnection, publish, watchReconnects } from "../../../shared/io/nats.ts";
import type { HostDeps } from "../../host-deps.ts";
import type { Backbone, RoomOwners } from "../../ports.ts";

export type RoomOwnersDeps = Pick<HostDeps, "endOfTurn"> & {
  readonly lastOfTurn: (run: () => void) => void;
  readonly localOwners?: LocalOwners | undefined;
};

const NO_RESPONDERS = 503;

/** The subscription is created at the end of the turn. */
type Coming = { readonly isComing: true };

type Unsent = { readonly room: RoomKey; readonly message: ToOwner; readonly epoch: Epoch };

export function natsRoomOwners(
  nats: NatsConnection,
  subjects: Subjects,
  gateway: GatewayId,
  { endOfTurn, lastOfTurn, localOwners }: RoomOwnersDeps,
): { readonly rooms: RoomOwners; start(backbone: Backbone): Promise<void>; stop(): void } {
  const turnEnds = untilTurnEnds(endOfTurn);
  const flush = flushTogether(nats);
  const followed = new Map<RoomKey, Subscription | Coming>();
  const roomsById = new Map<number, RoomKey>();
  const subscribe = lightSubscriber(nats, (error, msg) => {
    const room = error === null ? roomsById.get(msg.sid) : undefined;
    if (room !== undefined) backbone?.receiveFromOwner(room, msg.data);
  });
  let connected = true;
  let backbone: Backbone | undefined;
  /** The messages of this turn, in order. One write for all of them costs less than a write for each joining client. */
  let unsent: Unsent[] = [];

  const send = ({ room, message, epoch }: Unsent): void => {
    // While disconnected the NATS client would buffer the message without bound. The room sends it again after the
    // reconnect.
    if (!followed.has(room) || !connected) return;
    const local = localOwners?.get(room);
    if (local !== undefined && local.openEpoch === epoch) return local.receiveMessage(message, 0); // An open owner takes messages at once.
    publish(nats, subjects.toOwner(room), encodeToOwner(message), { reply: subjects.toGateway(gateway, room) });
  };

  const sendUnsent = (): void => {
    const now = unsent;
    unsent = [];
    for (const waiting of now) send(waiting);
  };

  const rooms: RoomOwners = {
    follow: async (room) => {
      const coming: Coming = { isComing: true };
      followed.set(room, coming);
      // Reconnecting clients open hundreds of rooms in one turn. Subscribing to them one by one would cost two writes
      // each.
      await turnEnds();
      if (followed.get(room) !== coming) return;
      const subscription = subscribe(subjects.editsOut(room));
      followed.set(room, subscription);
      roomsById.set(subscription.getID(), room);
      await flush();
    },
    unfollow: (room) => {
      const subscription = followed.get(room);
      followed.delete(room);
      if (subscription === undefined || "isComing" in subscription) return;
      roomsById.delete(subscription.getID());
      subscription.unsubscribe();
    },
    sendToOwner: (room, message, epoch) => {
      if (unsent.length === 0) lastOfTurn(sendUnsent);
      unsent.push({ room, message, epoch });
    },
  };

  const receiveAnswer = (msg: Msg): void => {
    const room = roomOfSubject(msg.subject);
    if (room === undefined) return;
    if (msg.data.byteLength === 0 && msg.headers?.code === NO_RESPONDERS) backbone?.receiveNoResponders(room);
    else backbone?.receiveAnswer(room, msg.data);
  };

  return {
    rooms,
    start: async (given) => {
      backbone = given;
      nats.subscribe(subjects.allToGateway(gateway), {
        callback: crashing((error, msg) => {
          if (error === null) receiveAnswer(msg);
        }),
      });
      void watchReconnects(nats, {
        receiveLost: () => {
          connected = false;
          given.receiveBackboneLost();
        },
        receiveBack: () => void (connected = true),
        receiveFound: () => given.receiveBackboneFound(),
      });
      await nats.flush();
    },
    /** Call before the connection closes. */
    stop: sendUnsent,
  };
}
