/** Room servers hear of each other the way everyone else hears of them. */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { ServerHeartbeat, UnreachedServer } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { type NatsConnection, say } from "../../shared/io/nats.ts";
import { isServerGone } from "../../shared/io/nats-ask.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { Peers } from "../ports.ts";

export function natsHeartbeat(nats: NatsConnection, subjects: Subjects): Peers {
  return {
    sayAlive: (heartbeat) => say(nats, subjects.servers, encodeJson(heartbeat)),
    onHeartbeat: (receive) => void hear(nats, subjects.servers, ServerHeartbeat, receive),
    onUnreached: (receive) => void hear(nats, subjects.unreachedServers, UnreachedServer, ({ server }) => receive(server)),
    isGone: (server) => isServerGone(nats, subjects, server),
  };
}
