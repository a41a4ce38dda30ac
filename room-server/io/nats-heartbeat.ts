/** Room servers hear of each other the way everyone else hears of them. */

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { ServerHeartbeat, UnreachedServer } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { crashing, type NatsConnection, say } from "../../shared/io/nats.ts";
import { isServerGone } from "../../shared/io/nats-ask.ts";
import type { Peers } from "../ports.ts";

export function natsHeartbeat(nats: NatsConnection, subjects: Subjects): Peers {
  return {
    sayAlive: (heartbeat) => say(nats, subjects.servers, encodeJson(heartbeat)),
    onHeartbeat: (receive) => {
      nats.subscribe(subjects.servers, {
        callback: crashing((error, msg) => {
          const heartbeat = error === null ? decodeJson(ServerHeartbeat, msg.data) : undefined;
          if (heartbeat !== undefined) receive(heartbeat);
        }),
      });
    },
    onUnreached: (receive) => {
      nats.subscribe(subjects.unreachedServers, {
        callback: crashing((error, msg) => {
          const unreached = error === null ? decodeJson(UnreachedServer, msg.data) : undefined;
          if (unreached !== undefined) receive(unreached.server);
        }),
      });
    },
    isGone: (server) => isServerGone(nats, subjects, server),
  };
}
