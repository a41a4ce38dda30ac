/**
 * Presence over core NATS, on a connection of its own: one message carries all rooms of a pair of gateway and room
 * server. No edit waits behind these bytes, neither in this process nor in nats-server.
 */

import { GatewayHeartbeat } from "../../shared/bus/placement-messages.ts";
import { batchesOf, decodePresenceUp, encodePresenceDown } from "../../shared/bus/presence-batches.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { PresenceBus } from "../ports.ts";
import { subscribeJson } from "../../shared/io/nats-json.ts";

export function natsPresence(
  nats: NatsConnection,
  subjects: Subjects,
  server: ServerId,
  { metrics }: { metrics: RoomServerMetrics },
): PresenceBus {
  let connected = true;
  let losses = 0;
  const watchConnection = async (): Promise<void> => {
    for await (const { type } of nats.status()) {
      if (type === "disconnect") [connected, losses] = [false, losses + 1];
      // Rejects if the connection is lost again: another "reconnect" follows.
      else if (type === "reconnect")
        nats.flush().then(
          () => (connected = true),
          () => {},
        );
    }
  };
  void watchConnection();

  return {
    sendBatch: (gateway, { timing, entries }) => {
      if (!connected) return; // The client would buffer it and send it when it is no longer true.
      const { batches, unsent } = batchesOf(entries, nats.info?.max_payload ?? Number.POSITIVE_INFINITY);
      // No user's presence may crash a room's owner: gateways that miss a delta request a snapshot.
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
