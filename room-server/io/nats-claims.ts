/** "Take this room", asked of this server. Whoever gets no reply goes on to the next server. */

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { ClaimRequest } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection, respond } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import type { Claims } from "../ports.ts";

export function natsClaims(nats: NatsConnection, subjects: Subjects, server: ServerId, log: Log): Claims {
  return {
    onClaim: (answer) => {
      nats.subscribe(subjects.claim(server), {
        callback: crashing((error, msg) => {
          const request = error === null ? decodeJson(ClaimRequest, msg.data) : undefined;
          if (request === undefined)
            return log.warn({ error }, "a claim request did not decode: do gateways and room servers run the same version?");
          void answer(request).then((reply) => respond(msg, encodeJson(reply)));
        }),
      });
    },
  };
}
