/** What the leaderboard sends and receives on NATS: changed boards, watches and display names. */

import { type DisplayName, DisplayNames, type BoardUpdate, BoardWatch } from "../../shared/bus/board-messages.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { type NatsConnection, publish } from "../../shared/io/nats.ts";
import { subscribeJson } from "../../shared/io/nats-json.ts";
import type { BoardPublisher } from "../ports.ts";

export function natsShown(nats: NatsConnection, subjects: Subjects): BoardPublisher {
  return {
    publish: (news: BoardUpdate) => {
      publish(nats, subjects.boards(news.room), encodeJson(news));
    },
  };
}

export function subscribeWatches(nats: NatsConnection, subjects: Subjects, receive: (watch: BoardWatch) => void): void {
  subscribeJson(nats, subjects.watchBoard, BoardWatch, receive);
}

export function subscribeNames(nats: NatsConnection, subjects: Subjects, receive: (name: DisplayName) => void): void {
  subscribeJson(nats, subjects.boardNames, DisplayNames, (names) => names.forEach(receive));
}
