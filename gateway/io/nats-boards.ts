/** Boards over core NATS: what leaderboards say of a room is heard for as long as somebody here looks at it. */

import type { Subscription } from "nats";

import { BoardNews } from "../../shared/bus/board-messages.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { type NatsConnection, say } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { BoardBus } from "../ports.ts";
import type { Services } from "./nats-services.ts";

export type BoardListener = { receiveNews(news: BoardNews): void; receiveLineFound(): void };

export function natsBoards(
  nats: NatsConnection,
  subjects: Subjects,
  leaderboards: Services,
): { boardBus: BoardBus; start(listener: BoardListener): void } {
  const subscriptions = new Map<RoomKey, Subscription>();
  let listener: BoardListener | undefined;
  let connected = true;

  /** While the line is down the client would keep it for later and without bound. */
  const tell = (subject: string, message: object): void => {
    if (connected) say(nats, subject, encodeJson(message));
  };

  const watchConnection = async (): Promise<void> => {
    for await (const status of nats.status()) {
      if (status.type === "disconnect") connected = false;
      else if (status.type === "reconnect") {
        connected = true;
        listener?.receiveLineFound();
      }
    }
  };

  const boardBus: BoardBus = {
    follow: (room) => {
      subscriptions.set(
        room,
        hear(nats, subjects.boards(room), BoardNews, (news) => listener?.receiveNews(news)),
      );
    },
    unfollow: (room) => {
      subscriptions.get(room)?.unsubscribe();
      subscriptions.delete(room);
    },
    watch: (watch) => tell(subjects.watchBoard, watch),
    tellNames: (names) => tell(subjects.boardNames, names),
    leaderboards: () => leaderboards.urls().length,
  };
  return {
    boardBus,
    start: (given) => {
      listener = given;
      void watchConnection();
    },
  };
}
