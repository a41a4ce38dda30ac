/** The rooms' edits over NATS. */

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { HostDeps } from "../host-deps.ts";
import { roomLines, type RoomLines } from "./room-lines.ts";

export function natsRooms(nats: NatsConnection, subjects: Subjects, gateway: GatewayId, deps: Pick<HostDeps, "endOfTurn">): RoomLines {
  return roomLines(
    nats,
    {
      heard: subjects.editsOut,
      told: subjects.toOwner,
      reply: (room) => subjects.toGateway(gateway, room),
      replies: subjects.allToGateway(gateway),
    },
    deps,
  );
}
