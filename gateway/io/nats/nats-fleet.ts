/** Room servers, gateways and placement for operators: their heartbeats, reports and drain commands over NATS. */

import { jetstream } from "@nats-io/jetstream";

import {
  GatewayReport,
  GatewayReportRequest,
  RoomListReply,
  RoomReport,
  type RoomReportRequest,
} from "../../../shared/bus/fleet-messages.ts";
import { encodeJson } from "../../../shared/bus/json-messages.ts";
import { PlannedRoom, RoomPin, type ServerHeartbeat } from "../../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import { type Leases, NO_HOLDER } from "../../../shared/cluster/lease.ts";
import type { Millis } from "../../../shared/ids.ts";
import { existingLeases } from "../../../shared/io/kv-leases.ts";
import { commandServer, bucketOf, moveRoomTo, readEntry } from "../../../shared/io/move-room.ts";
import { isNoAnswer, requestMany, requestManyCounted, requestReply, subscribeJson } from "../../../shared/io/nats-json.ts";
import { type NatsConnection, respond } from "../../../shared/io/nats.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { LostRoomServer } from "../../operations/servers-lost.ts";
import type { FleetControl, FleetSight, OpenRooms } from "../../ports.ts";

/**
 * Gateways are asked at most twice a second, even if many consoles are open. Shorter than the wait for room servers: after a
 * wait without any answer, a new question decides whether NATS is reachable.
 */
const KEPT_MS = 500;
/** The index of placement's only lease. */
const LEASE = 0;
/** A leader renews its lease several times within this. */
const LEADER_SILENCE_MS_MAX = 10_000;
/** Short, because a person waits for the answer, which has more parts than the leader. */
const LEADER_ANSWER_MS_MAX = 2_000;

export function natsFleet(
  nats: NatsConnection,
  subjects: Subjects,
  observed: { readonly servers: () => readonly ServerHeartbeat[]; readonly serversLost: () => readonly LostRoomServer[] },
  clock: Clock,
): FleetControl {
  const ask = (question: GatewayReportRequest): Promise<GatewayReport[]> =>
    requestMany(nats, subjects.askGateways, encodeJson(question), GatewayReport);
  let leases: Leases | undefined;
  let seen: { readonly revision: number; readonly at: Millis } | undefined;

  /** A holder that does not renew its lease is not the leader, because a killed leader does not release its lease. */
  const readLeader = async (): Promise<string | undefined> => {
    leases ??= await existingLeases(jetstream(nats, { timeout: LEADER_ANSWER_MS_MAX }), subjects.placementBucket).catch(undefinedIfSilent);
    const read = await leases?.read(LEASE).catch(undefinedIfSilent);
    if (read === undefined) return undefined;
    const { lease, revision } = read;
    if (seen?.revision !== revision) seen = { revision, at: clock.now() };
    if (lease === undefined || lease.holder === NO_HOLDER || clock.now() - seen.at > LEADER_SILENCE_MS_MAX) return undefined;
    return lease.holder;
  };

  const look = async (): Promise<FleetSight> => {
    const gateways = (await ask({})).sort((a, b) => (a.gateway < b.gateway ? -1 : 1));
    return { gateways, servers: observed.servers(), serversLost: observed.serversLost() };
  };

  return {
    servers: observed.servers,
    look: cachedFor(look, KEPT_MS, clock),
    leader: cachedFor(readLeader, KEPT_MS, clock),
    drainGateway: async (gateway) => (await ask({ drain: gateway })).find((account) => account.gateway === gateway),
    drainServer: (server) => commandServer({ nats, subjects }, server, { kind: "drain" }),
  };
}

/** NATS, or its log, does not answer. */
function undefinedIfSilent(error: unknown): undefined {
  if (!isNoAnswer(error)) throw error;
}

/** Answers questions to this gateway. */
export function answerGatewayQuestions(nats: NatsConnection, subjects: Subjects, account: () => GatewayReport, drain: () => void): void {
  subscribeJson(nats, subjects.askGateways, GatewayReportRequest, (question, msg) => {
    if (question.drain === account().gateway) drain();
    respond(msg, encodeJson(account()));
  });
}

/**
 * Open rooms: asked from the room servers that own them, and read from the buckets of placement and of operators' pins.
 */
const OWNER_MS_MAX = 1_000;

/** `servers` is the number of room servers that send heartbeats. One is expected without any, because NATS may be silent. */
export function natsOpenRooms(nats: NatsConnection, subjects: Subjects, servers: () => number): OpenRooms {
  const placed = { nats, subjects };
  return {
    list: (question) => requestManyCounted(nats, subjects.listRooms, encodeJson(question), RoomListReply, Math.max(1, servers())),
    describe: async (room) => {
      const [account, planned, pin] = await Promise.all([
        requestReply(nats, subjects.askRooms, { room } satisfies RoomReportRequest, RoomReport, OWNER_MS_MAX),
        bucketOf(placed, subjects.planBucket).then((plans) => readEntry(plans, room, PlannedRoom)),
        bucketOf(placed, subjects.pinsBucket).then((pins) => readEntry(pins, room, RoomPin)),
      ]);
      return { account, planned, pin };
    },
    move: (room, to) => moveRoomTo(placed, room, to),
  };
}

/** Shares one request among all that ask within `keptMs`. */
export function cachedFor<Answer>(ask: () => Promise<Answer>, keptMs: number, clock: Clock): () => Promise<Answer> {
  let kept: Promise<Answer> | undefined;
  const forget = (asked: Promise<Answer>): void => {
    if (kept === asked) kept = undefined;
  };
  return () => {
    if (kept !== undefined) return kept;
    const asked = ask();
    kept = asked;
    asked.then(
      () => clock.after(keptMs, () => forget(asked)),
      () => forget(asked),
    );
    return asked;
  };
}
