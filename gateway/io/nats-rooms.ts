/**
 * Rooms over core NATS: fire and forget both ways. The owner's answers, and NATS's own "no responders", come back
 * on one subscription for all rooms, with the room in the subject.
 */

import type { Msg, Subscription } from "nats";

import { roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey } from "../../shared/ids.ts";
import { crashing, type NatsConnection } from "../../shared/io/nats.ts";
import type { Backbone, Rooms } from "../ports.ts";

const NO_RESPONDERS = 503;

type Route = { readonly subscription: Subscription; readonly to: string; readonly reply: string };

export function natsRooms(nats: NatsConnection, subjects: Subjects, gateway: GatewayId): { rooms: Rooms; start(backbone: Backbone): Promise<void> } {
  const routes = new Map<RoomKey, Route>();
  let connected = true;
  let backbone: Backbone | undefined;

  const rooms: Rooms = {
    follow: (room) => {
      const subscription = nats.subscribe(subjects.editsOut(room), {
        callback: crashing((error, msg) => {
          if (error === null) backbone?.receiveFromOwner(room, msg.data);
        }),
      });
      routes.set(room, { subscription, to: subjects.editsIn(room), reply: subjects.toGateway(gateway, room) });
      return nats.flush();
    },
    unfollow: (room) => {
      routes.get(room)?.subscription.unsubscribe();
      routes.delete(room);
    },
    tell: (room, message) => {
      const route = routes.get(room);
      // The client would keep it for later and without bound; the room says it again once the line is back.
      if (route !== undefined && connected) nats.publish(route.to, message, { reply: route.reply });
    },
  };

  const receiveAnswer = (msg: Msg): void => {
    const room = roomOfSubject(msg.subject);
    if (room === undefined) return;
    if (msg.data.byteLength === 0 && msg.headers?.code === NO_RESPONDERS) backbone?.receiveNoResponders(room);
    else backbone?.receiveAnswer(room, msg.data);
  };

  const watchConnection = async (): Promise<void> => {
    for await (const status of nats.status()) {
      if (status.type === "disconnect") {
        connected = false;
        backbone?.receiveBackboneLost();
      } else if (status.type === "reconnect") {
        connected = true;
        // Rejects if the line is lost once more: another "reconnect" follows.
        nats.flush().then(() => backbone?.receiveBackboneFound(), () => {});
      }
    }
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
      void watchConnection();
      await nats.flush();
    },
  };
}
