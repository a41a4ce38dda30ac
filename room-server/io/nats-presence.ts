/** Presence over core NATS: what owners say, on subjects of its own. What they hear comes with edits (nats-inbox.ts). */

import { GatewayHeartbeat } from "../../shared/bus/placement-messages.ts";
import { encodePresenceAnswer, encodePresenceFromOwner } from "../../shared/bus/presence-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { carries, type NatsConnection, say } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { PresenceBus } from "../ports.ts";

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
      // Rejects if the line is lost once more: another "reconnect" follows.
      else if (type === "reconnect")
        nats.flush().then(
          () => (connected = true),
          () => {},
        );
    }
  };
  void watchConnection();

  /** Nobody may end a room's owner, whatever they show: gateways that miss news ask for the whole. */
  const sayIfCarried = (subject: string, data: Uint8Array): void =>
    carries(nats, data) ? say(nats, subject, data) : metrics.presenceUnsent.inc();

  return {
    broadcast: (room, message) => {
      if (!connected) return; // The client would keep it for later, when it is no longer true.
      const bytes = encodePresenceFromOwner(message);
      sayIfCarried(subjects.presenceOut(room), bytes);
      sent(room, bytes.byteLength);
    },
    answer: (gateway, room, answer) => {
      if (connected) sayIfCarried(subjects.presenceToGateway(gateway, room), encodePresenceAnswer(answer));
    },
    onHeartbeat: (receive) => void hear(nats, subjects.gateways, GatewayHeartbeat, ({ gateway }) => receive(gateway)),
    line: () => ({ isUp: connected, losses }),
  };
}
