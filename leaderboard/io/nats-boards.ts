/** What the leaderboard says on NATS, and hears: where its HTTP is, boards that changed, and who looks at which. */

import { type BoardShown, BoardWatch, type LeaderboardHeartbeat } from "../../shared/bus/board-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
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

export function sendHeartbeats(nats: NatsConnection, subject: string, who: { service: string; url: string; everyMs: number }, clock: Clock): { stop(): void } {
  let callOff: () => void;
  const beat = (): void => {
    const heartbeat: LeaderboardHeartbeat = { service: who.service, url: who.url, time: clock.now() };
    if (!nats.isClosed()) nats.publish(subject, encodeJson(heartbeat));
    callOff = clock.after(who.everyMs, beat);
  };
  beat();
  return { stop: () => callOff() };
}
