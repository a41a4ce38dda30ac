/** What the leaderboard says on NATS, and hears: boards that changed, who looks at which, and how users are called. */

import { type BoardName, BoardNames, type BoardNews, BoardWatch } from "../../shared/bus/board-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { crashing, type NatsConnection, say } from "../../shared/io/nats.ts";
import type { Shown } from "../ports.ts";

export function natsShown(nats: NatsConnection, subjects: Subjects): Shown {
  return {
    publish: (news: BoardNews) => {
      say(nats, subjects.boards(news.room), encodeJson(news));
    },
  };
}

export function hearWatches(nats: NatsConnection, subjects: Subjects, receive: (watch: BoardWatch) => void): void {
  nats.subscribe(subjects.watchBoard, {
    callback: crashing((error, message) => {
      const watch = error === null ? decodeJson(BoardWatch, message.data) : undefined;
      if (watch !== undefined) receive(watch);
    }),
  });
}

export function hearNames(nats: NatsConnection, subjects: Subjects, receive: (name: BoardName) => void): void {
  nats.subscribe(subjects.boardNames, {
    callback: crashing((error, message) => {
      const names = error === null ? decodeJson(BoardNames, message.data) : undefined;
      names?.forEach(receive);
    }),
  });
}
