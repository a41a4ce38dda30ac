/** What an owner says to gateways, beside the records that JetStream republishes. */

import { encodeAnswer, encodeFromOwner } from "../../shared/bus/envelope.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { type NatsConnection, say } from "../../shared/io/nats.ts";
import type { Gateways } from "../ports.ts";

export function natsGateways(nats: NatsConnection, subjects: Subjects): Gateways {
  return {
    answer: (gateway, room, answer) => say(nats, subjects.toGateway(gateway, room), encodeAnswer(answer)),
    broadcast: (room, message) => say(nats, subjects.editsOut(room), encodeFromOwner(message)),
  };
}
