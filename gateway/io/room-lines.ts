/**
 * What is said about rooms over core NATS: fire and forget both ways. The owner's answers, and NATS's own "no
 * responders", come back on one subscription for all rooms, with the room in the subject.
 *
 * Thousands of quiet rooms are followed: of each there is its subscription and its name, and nothing that can be made
 * once there is something to say.
 */

import type { Msg, Subscription } from "nats";

import { roomOfSubject } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { untilTurnEnds } from "../../shared/io/end-of-turn.ts";
import { crashing, flushTogether, lightSubscriber, type NatsConnection, say } from "../../shared/io/nats.ts";
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

/** It is subscribed to at the end of the turn. */
type Coming = { readonly isComing: true };

export function roomLines(nats: NatsConnection, subjects: LineSubjects, { endOfTurn }: Pick<HostDeps, "endOfTurn">): RoomLines {
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

  const rooms: Rooms = {
    follow: async (room) => {
      const coming: Coming = { isComing: true };
      followed.set(room, coming);
      await turnEnds(); // A crowd that comes back opens hundreds of rooms in a turn: one by one, each would be two writes.
      if (followed.get(room) !== coming) return;
      const subscription = subscribe(subjects.heard(room));
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
    tell: (room, message) => {
      // The client would keep it for later and without bound; the room says it again once the line is back.
      if (followed.has(room) && connected) say(nats, subjects.told(room), message, { reply: subjects.reply(room) });
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
