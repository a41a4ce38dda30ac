/** Heartbeats and questions from NATS. A question that cannot be answered gets no reply: the asker's deadline and its own hash cover it. */

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { LocateRequest, ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { crashing, type NatsConnection, respond } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import type { Questions } from "../ports.ts";

export function natsQuestions(nats: NatsConnection, subjects: Subjects, log: Log): Questions {
  return {
    onHeartbeat: (receive) => {
      nats.subscribe(subjects.servers, {
        callback: crashing((error, msg) => {
          const heartbeat = error === null ? decodeJson(ServerHeartbeat, msg.data) : undefined;
          if (heartbeat !== undefined) receive(heartbeat);
        }),
      });
    },
    onLocate: (answer) => {
      nats.subscribe(subjects.locate, {
        queue: "placement",
        callback: crashing((error, msg) => {
          const request = error === null ? decodeJson(LocateRequest, msg.data) : undefined;
          if (request === undefined) return;
          answer(request).then(
            (reply) => respond(msg, encodeJson(reply)),
            (cause: unknown) => log.warn({ room: request.room, cause }, "the rooms bucket did not answer; the asker falls back to hashing"),
          );
        }),
      });
    },
  };
}
