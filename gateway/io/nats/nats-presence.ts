/**
 * Presence over core NATS, on a separate connection, so that no edit waits behind its bytes in this process or in
 * nats-server. One message carries all rooms of a pair of gateway and room server.
 *
 * Only the question for an unknown owner goes to the room's subject, to which the owner listens for edits. It has 20
 * bytes and is sent at most once in 500 ms per room.
 */

import type { Msg } from "nats";

import { encodeJson } from "../../../shared/bus/json-messages.ts";
import type { GatewayHeartbeat } from "../../../shared/bus/placement-messages.ts";
import { batchesOf, encodePresenceUp } from "../../../shared/bus/presence-batches.ts";
import { roomOfSubject, serverOfSubject, type Subjects } from "../../../shared/bus/subjects.ts";
import type { GatewayId } from "../../../shared/ids.ts";
import { crashing, type NatsConnection, publish, watchReconnects } from "../../../shared/io/nats.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { PresenceBackbone, PresenceServers } from "../../ports.ts";

const NO_RESPONDERS = 503;

export function natsPresenceServers(
  nats: NatsConnection,
  subjects: Subjects,
  gateway: GatewayId,
  { metrics }: { readonly metrics: Pick<GatewayMetrics, "presenceUnsent"> },
): { readonly servers: PresenceServers; start(backbone: PresenceBackbone): Promise<void> } {
  let connected = true;
  const heartbeat = encodeJson({ gateway } satisfies GatewayHeartbeat);
  const servers: PresenceServers = {
    sendBatch: (server, { sentAtMs, entries }) => {
      if (!connected) return; // The client would buffer it without bound. It is sent again after the reconnect.
      const { batches, unsent } = batchesOf(entries, nats.info?.max_payload ?? Number.POSITIVE_INFINITY);
      if (unsent > 0) metrics.presenceUnsent.inc(unsent); // An oversized message must not end the gateway.
      for (const batch of batches)
        publish(nats, subjects.presenceToServer(server), encodePresenceUp({ gateway, sentAtMs, entries: batch }), {
          reply: subjects.presenceToGateway(gateway, server),
        });
    },
    askOwner: (room, question) => {
      if (connected) publish(nats, subjects.toOwner(room), question, { reply: subjects.noPresenceOwner(gateway, room) });
    },
    publishHeartbeat: () => publish(nats, subjects.gateways, heartbeat),
  };

  return {
    servers,
    start: async (backbone) => {
      const subscribe = (subject: string, receive: (msg: Msg) => void): void =>
        void nats.subscribe(subject, {
          callback: crashing((error, msg) => {
            if (error === null) receive(msg);
          }),
        });
      subscribe(subjects.allPresenceToGateway(gateway), (msg) => {
        const server = serverOfSubject(msg.subject);
        if (isNoResponders(msg)) backbone.receiveServerGone(server);
        else backbone.receiveBatch(server, msg.data);
      });
      subscribe(subjects.allNoPresenceOwner(gateway), (msg) => {
        const room = roomOfSubject(msg.subject);
        if (room !== undefined && isNoResponders(msg)) backbone.receiveNoOwner(room);
      });
      void watchReconnects(nats, {
        receiveLost: () => {
          connected = false;
          backbone.receiveBackboneLost();
        },
        receiveBack: () => void (connected = true),
        receiveFound: () => backbone.receiveBackboneFound(),
      });
      await nats.flush();
    },
  };
}

function isNoResponders({ data, headers }: Msg): boolean {
  return data.byteLength === 0 && headers?.code === NO_RESPONDERS;
}
