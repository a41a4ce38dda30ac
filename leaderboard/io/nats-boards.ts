/** What the leaderboard says on NATS, and hears: boards that changed, who looks at which, and how users are called. */

import { type BoardName, BoardNames, type BoardNews, BoardWatch } from "../../shared/bus/board-messages.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { type NatsConnection, say } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { Shown } from "../ports.ts";

export function natsShown(nats: NatsConnection, subjects: Subjects): Shown {
  return {
    publish: (news: BoardNews) => {
      say(nats, subjects.boards(news.room), encodeJson(news));
    },
  };
}

export function hearWatches(nats: NatsConnection, subjects: Subjects, receive: (watch: BoardWatch) => void): void {
  hear(nats, subjects.watchBoard, BoardWatch, receive);
}

export function hearNames(nats: NatsConnection, subjects: Subjects, receive: (name: BoardName) => void): void {
  hear(nats, subjects.boardNames, BoardNames, (names) => names.forEach(receive));
}
