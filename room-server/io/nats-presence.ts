/**
 * Publishes owners' presence over core NATS, on subjects of its own. Presence from gateways arrives with edits
 * (nats-inbox.ts).
 */

import { GatewayHeartbeat } from "../../shared/bus/placement-messages.ts";
import { encodePresenceReply, encodePresenceFromOwner } from "../../shared/bus/presence-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { carries, type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { PresenceBus } from "../ports.ts";
import { subscribeJson } from "../../shared/io/nats-json.ts";

export function natsPresence(
  nats: NatsConnection,
  subjects: Subjects,
  { metrics, sent }: { metrics: RoomServerMetrics; sent: (room: RoomKey, bytes: number) => void },
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

  /** No user's presence may crash a room's owner: gateways that miss a delta request a snapshot. */
  const publishIfCarried = (subject: string, data: Uint8Array): void =>
    carries(nats, data) ? publish(nats, subject, data) : metrics.presenceUnsent.inc();

  return {
    broadcast: (room, message) => {
      if (!connected) return; // The client would buffer it and send it when it is no longer true.
      const bytes = encodePresenceFromOwner(message);
      publishIfCarried(subjects.presenceOut(room), bytes);
      sent(room, bytes.byteLength);
    },
    answer: (gateway, room, answer) => {
      if (connected) publishIfCarried(subjects.presenceToGateway(gateway, room), encodePresenceReply(answer));
    },
    onHeartbeat: (receive) => void subscribeJson(nats, subjects.gateways, GatewayHeartbeat, ({ gateway }) => receive(gateway)),
    connectionStatus: () => ({ isUp: connected, losses }),
  };
}
