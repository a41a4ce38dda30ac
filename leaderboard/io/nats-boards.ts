/** What the leaderboard says on NATS, and hears: boards that changed, and who looks at which. */

import { type BoardShown, BoardWatch } from "../../shared/bus/board-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { crashing, type NatsConnection } from "../../shared/io/nats.ts";
import type { Shown } from "../ports.ts";

export function natsShown(nats: NatsConnection, subjects: Subjects): Shown {
  return {
    publish: (shown: BoardShown) => {
      if (!nats.isClosed()) nats.publish(subjects.boards(shown.room), encodeJson(shown));
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
