/** Heartbeats and questions from NATS. A question that cannot be answered gets no reply: the asker's deadline and its own hash cover it. */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { LocateRequest, ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { type Msg, type NatsConnection, respond } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { Log } from "../../shared/log.ts";
import type { Questions } from "../ports.ts";

export function natsQuestions(nats: NatsConnection, subjects: Subjects, log: Log): Questions {
  return {
    onHeartbeat: (receive) => void hear(nats, subjects.servers, ServerHeartbeat, receive),
    onLocate: (answer) => {
      const receive = (request: LocateRequest, msg: Msg): void =>
        void answer(request).then(
          (reply) => respond(msg, encodeJson(reply)),
          (cause: unknown) => log.warn({ room: request.room, cause }, "the rooms bucket did not answer; the asker falls back to hashing"),
        );
      hear(nats, subjects.locate, LocateRequest, receive, { queue: "placement" });
    },
  };
}
