/** All that a room server says and hears on NATS, each part by what it is for. */

import { hostname } from "node:os";

import type { RoomListAnswer, RoomListQuestion } from "../../shared/bus/fleet-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { closeNats, connectAs } from "../../shared/io/nats.ts";
import { natsCounts } from "../../shared/io/nats-counts.ts";
import type { SharedConfig } from "../../shared/settings.ts";
import { type RoomServerConfig, roomHostOptions } from "../config.ts";
import type { RoomServerParts } from "../room-server.ts";
import { natsClaims } from "./nats-claims.ts";
import { natsHeartbeat } from "./nats-heartbeat.ts";
import { natsOrders } from "./nats-orders.ts";
import { natsPorts, type NatsPortsDeps } from "./nats-ports.ts";
import { answerQuestions, answerRoomLists } from "./nats-questions.ts";

export type Asked = Pick<RoomServerParts, "rooms" | "handOvers" | "presence"> & {
  readonly listRooms: (question: RoomListQuestion) => RoomListAnswer;
};

/** Refuses settings that this NATS could not carry. */
export async function connectBus(server: ServerId, config: SharedConfig & RoomServerConfig, deps: NatsPortsDeps) {
  const nats = await connectAs(server, config);
  const named = { ...config, serverHost: config.serverHost === "" ? hostname() : config.serverHost };
  const options = roomHostOptions(named, nats.info?.max_payload);
  const subjects = subjectsOf(config.environment);
  return {
    options,
    ports: await natsPorts(nats, subjects, server, config, deps),
    peers: natsHeartbeat(nats, subjects),
    counts: natsCounts(nats, subjects),
    /** From now on whoever asks for a room, gives an order or wants to know is answered. */
    answer: async ({ rooms, handOvers, presence, listRooms }: Asked): Promise<void> => {
      natsClaims(nats, subjects, server, deps.log).onClaim((request) => rooms.claim(request));
      natsOrders(nats, subjects, server, deps.log).onOrder((order) => handOvers.answer(order));
      answerQuestions(nats, subjects, server, (room) => presence.accountOf(room));
      answerRoomLists(nats, subjects, listRooms);
      await nats.flush();
    },
    stop: (): Promise<void> => closeNats(nats),
  };
}
