/**
 * Connects a room server to NATS: exchanges heartbeats, and answers claims, commands, requests for presence and
 * requests for lists of rooms.
 */

import { hostname } from "node:os";

import type { Registry } from "prom-client";

import { type RoomListReply, RoomListRequest, type RoomReport, RoomReportRequest } from "../../shared/bus/fleet-messages.ts";
import type { VitalRoom } from "../../shared/bus/vitals.ts";
import { subjectsOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { ServerId } from "../../shared/ids.ts";
import { closeNats, connectAs, logForbidden, type NatsConnection, publish, type Msg, respond } from "../../shared/io/nats.ts";
import { natsCounts } from "../../shared/io/nats-counts.ts";
import type { SharedConfig } from "../../shared/settings/common-settings.ts";
import { type RoomServerConfig, roomHostOptions } from "../config.ts";
import type { RoomServerParts } from "../room-server.ts";
import { publishVitals } from "../../shared/io/vitals.ts";
import { natsPorts, type NatsPortsDeps } from "./nats-ports.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import { ServerHeartbeat, UnreachedServer, ServerCommand, ClaimRequest } from "../../shared/bus/placement-messages.ts";
import { isServerGone, subscribeJson } from "../../shared/io/nats-json.ts";
import type { Peers, ServerCommands, Claims } from "../ports.ts";
import type { Log } from "../../shared/process/log.ts";
import { parseRoomKey, type RoomKey } from "../../shared/ids.ts";

type AnsweringParts = Pick<RoomServerParts, "rooms" | "handovers" | "presence"> & {
  readonly listRooms: (question: RoomListRequest) => RoomListReply;
};

/** Refuses settings that exceed the limits of this NATS server. */
export async function connectBus(server: ServerId, config: SharedConfig & RoomServerConfig, deps: NatsPortsDeps) {
  const [nats, presence] = await Promise.all([
    connectAs("room-server", server, config),
    connectAs("room-server", `${server} presence`, config),
  ]);
  for (const connection of [nats, presence]) logForbidden(connection, deps.log);
  const named = { ...config, serverHost: config.serverHost === "" ? hostname() : config.serverHost };
  const options = roomHostOptions(named, nats.info?.max_payload);
  const subjects = subjectsOf(config.environment);
  return {
    options,
    ports: await natsPorts({ nats, presence }, subjects, server, config, deps),
    peers: natsHeartbeat(nats, subjects),
    counts: natsCounts(nats, subjects),
    publishVitals: (rooms: () => readonly VitalRoom[], registry: Registry): (() => void) =>
      publishVitals(nats, subjects, { role: "room-server", instance: server, rooms }, registry, deps.clock),
    /** Starts to answer claims, commands and questions. */
    answer: async ({ rooms, handovers, presence: presences, listRooms }: AnsweringParts): Promise<void> => {
      natsClaims(nats, subjects, server, deps.log).onClaim((request) => rooms.claim(request));
      natsOrders(nats, subjects, server, deps.log).onOrder((order) => handovers.answerCommand(order));
      answerQuestions(nats, subjects, server, (room) => presences.accountOf(room));
      answerRoomLists(nats, subjects, listRooms);
      await Promise.all([nats.flush(), presence.flush()]);
    },
    stop: async (): Promise<void> => void (await Promise.all([closeNats(nats), closeNats(presence)])),
  };
}

/** Heartbeats between room servers, on one subject for all. */
export function natsHeartbeat(nats: NatsConnection, subjects: Subjects): Peers {
  return {
    publishHeartbeat: (heartbeat) => publish(nats, subjects.servers, encodeJson(heartbeat)),
    onHeartbeat: (receive) => void subscribeJson(nats, subjects.servers, ServerHeartbeat, receive),
    onUnreached: (receive) => void subscribeJson(nats, subjects.unreachedServers, UnreachedServer, ({ server }) => receive(server)),
    isGone: (server) => isServerGone(nats, subjects, server),
  };
}

/** Commands to this server from placement, operators and other room servers. */
export function natsOrders(nats: NatsConnection, subjects: Subjects, server: ServerId, log: Log): ServerCommands {
  return {
    onOrder: (answer) => {
      const receive = (order: ServerCommand, msg: Msg): void => void answer(order).then((reply) => respond(msg, encodeJson(reply)));
      const receiveOther = (error: Error | null): void =>
        log.warn({ error }, "an order did not decode: do placement and room servers run the same version?");
      subscribeJson(nats, subjects.order(server), ServerCommand, receive, { receiveOther });
    },
  };
}

/** Claims that are sent to this server. A requester without a reply tries the next server. */
export function natsClaims(nats: NatsConnection, subjects: Subjects, server: ServerId, log: Log): Claims {
  return {
    onClaim: (answer) => {
      const receive = (request: ClaimRequest, msg: Msg): void => void answer(request).then((reply) => respond(msg, encodeJson(reply)));
      const receiveOther = (error: Error | null): void =>
        log.warn({ error }, "a claim request did not decode: do gateways and room servers run the same version?");
      subscribeJson(nats, subjects.claim(server), ClaimRequest, receive, { receiveOther });
    },
  };
}

/**
 * Questions to all room servers. To a question about one room only its owner replies. To a question about all rooms
 * each server replies with its own.
 */
function answerQuestions(
  nats: NatsConnection,
  subjects: Subjects,
  server: ServerId,
  accountOf: (room: RoomKey) => Omit<RoomReport, "server"> | undefined,
): void {
  subscribeJson(nats, subjects.askRooms, RoomReportRequest, (question, msg) => {
    const room = parseRoomKey(question.room);
    const account = room === undefined ? undefined : accountOf(room);
    if (account !== undefined) respond(msg, encodeJson({ ...account, server } satisfies RoomReport));
  });
}

function answerRoomLists(nats: NatsConnection, subjects: Subjects, list: (question: RoomListRequest) => RoomListReply): void {
  subscribeJson(nats, subjects.listRooms, RoomListRequest, (question, msg) => respond(msg, encodeJson(list(question))));
}
