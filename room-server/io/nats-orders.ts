/** What placement, operators and other room servers tell this server to do. */

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { ServerOrder } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection, respond } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import type { Orders } from "../ports.ts";

export function natsOrders(nats: NatsConnection, subjects: Subjects, server: ServerId, log: Log): Orders {
  return {
    onOrder: (answer) => {
      nats.subscribe(subjects.order(server), {
        callback: crashing((error, msg) => {
          const order = error === null ? decodeJson(ServerOrder, msg.data) : undefined;
          if (order === undefined)
            return log.warn({ error }, "an order did not decode: do placement and room servers run the same version?");
          void answer(order).then((reply) => respond(msg, encodeJson(reply)));
        }),
      });
    },
  };
}
