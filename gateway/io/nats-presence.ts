/** The rooms' presence over NATS, on subjects of its own, and that this gateway is alive. */

import { encodeJson, type GatewayHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { GatewayId } from "../../shared/ids.ts";
import { type NatsConnection, say } from "../../shared/io/nats.ts";
import type { Backbone, PresenceRooms } from "../ports.ts";
import { roomLines } from "./room-lines.ts";

export function natsPresence(nats: NatsConnection, subjects: Subjects, gateway: GatewayId): { rooms: PresenceRooms; start(backbone: Backbone): Promise<void> } {
  const lines = roomLines(nats, { heard: subjects.presenceOut, told: subjects.presenceIn, reply: (room) => subjects.presenceToGateway(gateway, room), replies: subjects.allPresenceToGateway(gateway) });
  const heartbeat = encodeJson({ gateway } satisfies GatewayHeartbeat);
  return { rooms: { ...lines.rooms, sayAlive: () => say(nats, subjects.gateways, heartbeat) }, start: lines.start };
}
