/**
 * Presence over core NATS, on a separate connection, so that no edit waits behind its bytes in this process or in
 * nats-server. One message carries all rooms of a pair of gateway and room server.
 */

import { GatewayHeartbeat } from "../../shared/bus/placement-messages.ts";
import { batchesOf, decodePresenceUp, encodePresenceDown } from "../../shared/bus/presence-batches.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { subscribeJson } from "../../shared/io/nats-json.ts";
import { crashing, type NatsConnection, publish, watchReconnects } from "../../shared/io/nats.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { PresenceBus } from "../ports.ts";

export function natsPresence(
  nats: NatsConnection,
  subjects: Subjects,
  server: ServerId,
  { metrics }: { metrics: RoomServerMetrics },
): PresenceBus {
  let connected = true;
  let losses = 0;
  void watchReconnects(nats, {
    receiveLost: () => void ([connected, losses] = [false, losses + 1]),
    receiveFound: () => void (connected = true),
  });

  return {
    sendBatch: (gateway, { timing, entries }) => {
      if (!connected) return; // The NATS client would buffer the message and send it when it is outdated.
      const { batches, unsent } = batchesOf(entries, nats.info?.max_payload ?? Number.POSITIVE_INFINITY);
      // An oversized message must not crash a room's owner. Gateways that miss a delta request a snapshot.
      if (unsent > 0) metrics.presenceUnsent.inc(unsent);
      for (const batch of batches)
        publish(nats, subjects.presenceToGateway(gateway, server), encodePresenceDown({ timing, entries: batch }));
    },
    onBatch: (receive) => {
      nats.subscribe(subjects.presenceToServer(server), {
        callback: crashing((error, msg) => {
          const batch = error === null ? decodePresenceUp(msg.data) : undefined;
          if (batch === undefined) metrics.messagesUnread.inc();
          else receive(batch);
        }),
      });
    },
    onHeartbeat: (receive) => void subscribeJson(nats, subjects.gateways, GatewayHeartbeat, ({ gateway }) => receive(gateway)),
    connectionStatus: () => ({ isUp: connected, losses }),
  };
}
