/** Servers, rooms and events in the form that the operations console shows: with readable names and dates. */

import { assertNever } from "../../shared/assert.ts";
import {
  compareListed,
  type GatewayReport,
  type ListedRoom,
  type RoomCursor,
  type RoomListReply,
} from "../../shared/bus/fleet-messages.ts";
import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import type { MoveOutcome, ServerCommandReply, ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import { VITALS_EVERY_MS } from "../../shared/bus/vitals.ts";
import { type RoomKey, roomOf, type ServerId, tenantOf } from "../../shared/ids.ts";
import type { KeptEventsSince, TakeoverTally } from "../operations/events-kept.ts";
import type { RoomOverTime, RunningProcess, VitalsOverTime } from "../operations/vitals-history.ts";
import type { FleetSight, RoomDescription } from "../ports.ts";
import { errorAnswer, type HttpAnswer, isoDate, jsonAnswer } from "./answers.ts";
import type { Authority } from "./authorize.ts";
import { cursorText } from "./operations-requests.ts";

const NOT_OPEN = errorAnswer(404, "not-open", "nobody has this room open, so no server owns it: check the room's name and tenant");
export const NO_NATS = errorAnswer(503, "unavailable", "this gateway cannot reach NATS, so it knows of no room: check the NATS servers");

export function noServer(server: string): HttpAnswer {
  return errorAnswer(404, "no-such-server", `${server} sends no heartbeat: GET /v1/admin/fleet lists the servers that do`);
}

/** What this gateway knows of others, and whether it reaches NATS. */
export type SeenFleet = FleetSight & { readonly reachesNats: boolean };

/**
 * A gateway also answers its own request. If it does not receive its own answer, it has lost NATS, even if its
 * connection has not reported that yet. `own` is this gateway's report.
 */
export function seenFleet(own: GatewayReport, sight: FleetSight): SeenFleet {
  if (own.state !== "degraded" && sight.gateways.some(({ gateway }) => gateway === own.gateway)) return { ...sight, reachesNats: true };
  const others = sight.gateways.filter(({ gateway }) => gateway !== own.gateway);
  return { ...sight, gateways: [{ ...own, state: own.state === "ready" ? "degraded" : own.state }, ...others], reachesNats: false };
}

type FleetFacts = SeenFleet & {
  readonly environment: string;
  readonly at: number;
  readonly leader: string | undefined;
  readonly processes: readonly RunningProcess[];
  /** Of the disk with the data of local engines. Undefined: no gateway runs beside them. */
  readonly diskFreeBytes: number | undefined;
  readonly services: { readonly documents: number; readonly leaderboards: number; readonly leaderboardsWithoutRedis: number };
};

export function fleetAnswer(facts: FleetFacts): HttpAnswer {
  const { environment, at, reachesNats, servers, serversLost, gateways, leader, services, processes, diskFreeBytes } = facts;
  return jsonAnswer(200, {
    environment,
    at: isoDate(at),
    reachesNats,
    servers: servers.map(serverShown),
    serversLost: serversLost.map((lost) => ({ ...lost, at: isoDate(lost.at) })),
    gateways,
    placement: leader === undefined ? {} : { leader },
    services,
    processes,
    ...(diskFreeBytes === undefined ? {} : { diskFreeBytes }),
  });
}

/** `serversKnown`: room servers that send heartbeats, also those that have not answered. */
export function roomListAnswer(replies: readonly RoomListReply[], limit: number, serversKnown: number): HttpAnswer {
  const { rooms, next, ...page } = pageOf(replies, limit);
  return jsonAnswer(200, {
    rooms: rooms.map(listedRoomShown),
    ...page,
    serversKnown,
    ...(next === undefined ? {} : { next: cursorText(next) }),
  });
}

export function roomAnswer(room: RoomKey, { account, planned, pin }: RoomDescription): HttpAnswer {
  if (account === undefined) return NOT_OPEN;
  const { server, epoch, mode, shed, participants, presencePerSecond, gateways } = account;
  const placed =
    planned === undefined
      ? {}
      : {
          placed: {
            reason: planned.reason,
            at: isoDate(planned.at),
            ...(planned.replica === undefined ? {} : { replica: planned.replica }),
          },
        };
  return jsonAnswer(200, {
    ...namesOf(room),
    server,
    epoch,
    mode,
    participants,
    heldBack: shed,
    presencePerSecond,
    ...placed,
    ...(pin === undefined ? {} : { pin }),
    gateways: Object.entries(gateways).map(([gateway, members]) => ({ gateway, members })),
  });
}

export function maySeeEvent(event: OperationsEvent, authority: Authority): boolean {
  return (
    authority === undefined ||
    ("room" in event && tenantOf(event.room) === authority.tenant) ||
    ("tenant" in event && event.tenant === authority.tenant)
  );
}

export function eventsAnswer({ events, takeovers, last }: KeptEventsSince): HttpAnswer {
  return jsonAnswer(200, {
    events: events.map(({ seq, event }) => eventShown(seq, event)),
    takeovers: takeovers.map(takeoverShown),
    last,
  });
}

/** Values are numbers, or null for slots without one. `from`: slot of the first value. */
export function vitalsAnswer({ from, lines, instances }: VitalsOverTime): HttpAnswer {
  const shown = lines.map(({ vital, role, values }) => ({ vital, role, values: values.map(valueShown) }));
  return jsonAnswer(200, { everyMs: VITALS_EVERY_MS, from, series: shown, processes: instances });
}

export function roomVitalsAnswer(history: RoomOverTime | undefined): HttpAnswer {
  const { from, participants, editsPerSecond } = history ?? { from: 0, participants: [], editsPerSecond: [] };
  return jsonAnswer(200, {
    everyMs: VITALS_EVERY_MS,
    from,
    participants: participants.map(valueShown),
    editsPerSecond: editsPerSecond.map(valueShown),
  });
}

/** Four digits are more than a chart shows. */
function valueShown(value: number | undefined): number | null {
  return value === undefined ? null : Number(value.toPrecision(4));
}

export function moveAnswer(outcome: MoveOutcome, to: ServerId): HttpAnswer {
  switch (outcome.kind) {
    case "moved":
      return jsonAnswer(200, { from: outcome.from, to });
    case "open-nowhere":
      return NOT_OPEN;
    case "refused":
      return errorAnswer(409, "refused", outcome.reason);
    case "silent":
      return errorAnswer(
        503,
        "unavailable",
        `${outcome.server}, which owns the room, does not answer: check whether it runs, and try again`,
      );
    default:
      return assertNever(outcome);
  }
}

/** `reply` undefined: the server does not answer. */
export function serverDrainAnswer({ server, rooms }: ServerHeartbeat, reply: ServerCommandReply | undefined): HttpAnswer {
  if (reply === undefined) return errorAnswer(503, "unavailable", `${server} does not answer: check whether it runs, and try again`);
  return reply.kind === "done" ? jsonAnswer(202, { server, rooms }) : errorAnswer(409, "refused", reply.reason);
}

export function gatewayDrainAnswer(server: string, report: GatewayReport | undefined): HttpAnswer {
  return report === undefined ? noServer(server) : jsonAnswer(202, { server, connections: report.connections });
}

function serverShown({ server, rooms, draining, labels, load, logObstacle }: ServerHeartbeat): object {
  const { host = "", zone = "", pool = "" } = labels ?? {};
  return {
    server,
    rooms,
    draining,
    host,
    zone,
    pool,
    used: load?.used ?? 0,
    ...(logObstacle === undefined ? {} : { logObstacle }),
    hot: (load?.hot ?? []).map(({ room, share }) => ({ ...namesOf(room), share })),
  };
}

function listedRoomShown({ room, ...facts }: ListedRoom): object {
  return { ...namesOf(room), ...facts };
}

function eventShown(seq: number, { at, ...event }: OperationsEvent): object {
  return { seq, at: isoDate(at), ...event, ...("room" in event ? namesOf(event.room) : {}) };
}

function takeoverShown({ seq, first: { at, by, from, room }, count, rooms }: TakeoverTally): object {
  return { seq, at: isoDate(at), by, from, tenant: tenantOf(room), count, rooms: rooms.map(roomOf) };
}

function namesOf(room: RoomKey): { readonly tenant: string; readonly room: string } {
  return { tenant: tenantOf(room), room: roomOf(room) };
}

/**
 * One page of all open rooms, from the reports of the room servers. `next`: the start of the next page; absent on the
 * last page. `servers`: the number of room servers that answered.
 */
type RoomPage = {
  readonly rooms: readonly ListedRoom[];
  readonly matching: number;
  readonly servers: number;
  readonly next?: RoomCursor;
};

/** `answers`: up to `limit` + 1 rooms from each room server. */
export function pageOf(answers: readonly RoomListReply[], limit: number): RoomPage {
  const byRoom = new Map<RoomKey, ListedRoom>();
  const reported = answers.flatMap(({ rooms }) => rooms);
  for (const listed of reported) {
    // During a handover, or after a pause of the former owner, two servers report the room. The later epoch belongs to its owner.
    const other = byRoom.get(listed.room);
    if (other === undefined || other.epoch < listed.epoch) byRoom.set(listed.room, listed);
  }
  const all = [...byRoom.values()].sort(compareListed);
  const rooms = all.slice(0, limit);
  const last = rooms.at(-1);
  const next = all.length > limit && last !== undefined ? { participants: last.participants, room: last.room } : undefined;
  return {
    rooms,
    matching: answers.reduce((sum, { matching }) => sum + matching, 0) - (reported.length - byRoom.size),
    servers: answers.length,
    ...(next === undefined ? {} : { next }),
  };
}
