/**
 * Placement on NATS: receives heartbeats and locate requests, and sends commands to room servers. A request that cannot
 * be answered gets no reply: the requester has a deadline, and then chooses a server by hash.
 */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import {
  LocateRequest,
  SERVER_COMMAND_MS_MAX,
  ServerHeartbeat,
  ClaimReply,
  ServerCommandReply,
} from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { type Msg, type NatsConnection, respond } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { PlacementRequests, RoomServers } from "../ports.ts";
import { subscribeJson, requestReply } from "../../shared/io/nats-json.ts";

export function natsQuestions(nats: NatsConnection, subjects: Subjects, log: Log): PlacementRequests {
  return {
    onHeartbeat: (receive) => void subscribeJson(nats, subjects.servers, ServerHeartbeat, receive),
    onLocate: (answer) => {
      const receive = (request: LocateRequest, msg: Msg): void =>
        void answer(request).then(
          (reply) => respond(msg, encodeJson(reply)),
          (cause: unknown) =>
            log.warn({ room: request.room, cause }, "the rooms bucket did not answer; the requester falls back to hashing"),
        );
      subscribeJson(nats, subjects.locate, LocateRequest, receive, { queue: "placement" });
    },
  };
}

const CLAIM_MS_MAX = 2_000;

/** Sends commands to room servers, by request and reply. */
export function natsRoomServers(nats: NatsConnection, subjects: Subjects): RoomServers {
  return {
    claim: (server, request) => requestReply(nats, subjects.claim(server), request, ClaimReply, CLAIM_MS_MAX),
    order: (server, order) => requestReply(nats, subjects.order(server), order, ServerCommandReply, SERVER_COMMAND_MS_MAX),
  };
}
