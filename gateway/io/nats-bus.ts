/** All that a gateway says and hears on NATS, each part by what it is for. */

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { natsCounts } from "../../shared/io/nats-counts.ts";
import type { Backbone } from "../ports.ts";
import { natsOrders, natsSanctions } from "./nats-admin.ts";
import { type BoardListener, natsBoards } from "./nats-boards.ts";
import { natsPlacement } from "./nats-placement.ts";
import { natsPresence } from "./nats-presence.ts";
import { natsRooms } from "./nats-rooms.ts";
import { natsServices } from "./nats-services.ts";

export type Listeners = { readonly rooms: Backbone; readonly presence: Backbone; readonly boards: BoardListener };

export function natsBus(nats: NatsConnection, subjects: Subjects, gateway: GatewayId, options: { serverSilenceMsMax: number }, clock: Clock) {
  const [rooms, presence] = [natsRooms(nats, subjects, gateway), natsPresence(nats, subjects, gateway)];
  const [documents, leaderboards] = [natsServices(nats, subjects.documents, clock), natsServices(nats, subjects.leaderboards, clock)];
  const boards = natsBoards(nats, subjects, leaderboards);
  return {
    services: { documents, leaderboards },
    ports: {
      rooms: rooms.rooms,
      presence: presence.rooms,
      boardBus: boards.boardBus,
      placement: natsPlacement(nats, subjects, options, clock),
      counts: natsCounts(nats, subjects),
      sanctionsLine: natsSanctions(nats, subjects, gateway),
      orders: natsOrders(nats, subjects),
    },
    start: async (listeners: Listeners): Promise<void> => {
      await rooms.start(listeners.rooms);
      await presence.start(listeners.presence);
      boards.start(listeners.boards);
    },
  };
}
