/** What placement, operators and other room servers tell this server to do. */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { ServerOrder } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { type Msg, type NatsConnection, respond } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { Log } from "../../shared/log.ts";
import type { Orders } from "../ports.ts";

export function natsOrders(nats: NatsConnection, subjects: Subjects, server: ServerId, log: Log): Orders {
  return {
    onOrder: (answer) => {
      const receive = (order: ServerOrder, msg: Msg): void => void answer(order).then((reply) => respond(msg, encodeJson(reply)));
      const receiveOther = (error: Error | null): void =>
        log.warn({ error }, "an order did not decode: do placement and room servers run the same version?");
      hear(nats, subjects.order(server), ServerOrder, receive, { receiveOther });
    },
  };
}
