/** "Take this room", asked of this server. Whoever gets no reply goes on to the next server. */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { ClaimRequest } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { type Msg, type NatsConnection, respond } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { Log } from "../../shared/log.ts";
import type { Claims } from "../ports.ts";

export function natsClaims(nats: NatsConnection, subjects: Subjects, server: ServerId, log: Log): Claims {
  return {
    onClaim: (answer) => {
      const receive = (request: ClaimRequest, msg: Msg): void => void answer(request).then((reply) => respond(msg, encodeJson(reply)));
      const receiveOther = (error: Error | null): void =>
        log.warn({ error }, "a claim request did not decode: do gateways and room servers run the same version?");
      hear(nats, subjects.claim(server), ClaimRequest, receive, { receiveOther });
    },
  };
}
