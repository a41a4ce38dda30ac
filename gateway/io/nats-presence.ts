/** The rooms' presence over NATS, on subjects of its own, and that this gateway is alive. */

import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { GatewayHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { GatewayId } from "../../shared/ids.ts";
import { carries, type NatsConnection, say } from "../../shared/io/nats.ts";
import type { HostDeps } from "../host-deps.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Backbone, PresenceRooms } from "../ports.ts";
import { roomLines } from "./room-lines.ts";

export function natsPresence(
  nats: NatsConnection,
  subjects: Subjects,
  gateway: GatewayId,
  { endOfTurn, metrics }: Pick<HostDeps, "endOfTurn"> & { readonly metrics: Pick<GatewayMetrics, "presenceUnsent"> },
): { rooms: PresenceRooms; start(backbone: Backbone): Promise<void> } {
  const lines = roomLines(
    nats,
    {
      heard: subjects.presenceOut,
      told: subjects.toOwner,
      reply: (room) => subjects.presenceToGateway(gateway, room),
      replies: subjects.allPresenceToGateway(gateway),
    },
    { endOfTurn },
  );
  const heartbeat = encodeJson({ gateway } satisfies GatewayHeartbeat);
  const rooms: PresenceRooms = {
    ...lines.rooms,
    // No member may end a gateway, whatever it shows: what is not sent is not shown.
    tell: (room, message) => (carries(nats, message) ? lines.rooms.tell(room, message) : metrics.presenceUnsent.inc()),
    sayAlive: () => say(nats, subjects.gateways, heartbeat),
  };
  return { rooms, start: lines.start };
}
