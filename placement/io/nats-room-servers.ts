/** Tells room servers what to do, by request and reply. */

import { ClaimReply, OrderReply } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { askNats } from "../../shared/io/nats-ask.ts";
import type { RoomServers } from "../ports.ts";

const CLAIM_MS_MAX = 2_000;
/** A warm copy of a busy room takes a while, and a move waits for one. */
const ORDER_MS_MAX = 12_000;

export function natsRoomServers(nats: NatsConnection, subjects: Subjects): RoomServers {
  return {
    claim: (server, request) => askNats(nats, subjects.claim(server), request, ClaimReply, CLAIM_MS_MAX),
    order: (server, order) => askNats(nats, subjects.order(server), order, OrderReply, ORDER_MS_MAX),
  };
}
