/**
 * What is said about rooms over core NATS: fire and forget both ways. The owner's answers, and NATS's own "no
 * responders", come back on one subscription for all rooms, with the room in the subject.
 */

import type { Msg, Subscription } from "nats";

import { roomOfSubject } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { untilTurnEnds } from "../../shared/io/end-of-turn.ts";
import { crashing, flushTogether, type NatsConnection, say, subscribeLightly } from "../../shared/io/nats.ts";
import type { HostDeps } from "../host-deps.ts";
import type { Backbone, Rooms } from "../ports.ts";

/** The subjects of one line of talk: edits, or presence. */
export type LineSubjects = {
  readonly heard: (room: RoomKey) => string;
  readonly told: (room: RoomKey) => string;
  readonly reply: (room: RoomKey) => string;
  readonly replies: string;
};
export type RoomLines = { readonly rooms: Rooms; start(backbone: Backbone): Promise<void> };

const NO_RESPONDERS = 503;

type Route = { readonly to: string; readonly reply: string; subscription?: Subscription };

export function roomLines(nats: NatsConnection, subjects: LineSubjects, { endOfTurn }: Pick<HostDeps, "endOfTurn">): RoomLines {
  const turnEnds = untilTurnEnds(endOfTurn);
  const flush = flushTogether(nats);
  const routes = new Map<RoomKey, Route>();
  let connected = true;
  let backbone: Backbone | undefined;

  const rooms: Rooms = {
    follow: async (room) => {
      const route: Route = { to: subjects.told(room), reply: subjects.reply(room) };
      routes.set(room, route);
      await turnEnds(); // A crowd that comes back opens hundreds of rooms in a turn: one by one, each would be two writes.
      if (routes.get(room) !== route) return;
      route.subscription = subscribeLightly(nats, subjects.heard(room), (error, msg) => {
        if (error === null) backbone?.receiveFromOwner(room, msg.data);
      });
      await flush();
    },
    unfollow: (room) => {
      routes.get(room)?.subscription?.unsubscribe();
      routes.delete(room);
    },
    tell: (room, message) => {
      const route = routes.get(room);
      // The client would keep it for later and without bound; the room says it again once the line is back.
      if (route !== undefined && connected) say(nats, route.to, message, { reply: route.reply });
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
        nats.flush().then(
          () => backbone?.receiveBackboneFound(),
          () => {},
        );
      }
    }
  };

  return {
    rooms,
    start: async (given) => {
      backbone = given;
      nats.subscribe(subjects.replies, {
        callback: crashing((error, msg) => {
          if (error === null) receiveAnswer(msg);
        }),
      });
      void watchConnection();
      await nats.flush();
    },
  };
}
