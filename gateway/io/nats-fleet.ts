/** Room servers, gateways and placement as the people who run them ask for: heard, asked and told over NATS. */

import { jetstream } from "@nats-io/jetstream";

import { GatewayAccount, GatewayQuestion } from "../../shared/bus/fleet-messages.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import { gather, isNoAnswer } from "../../shared/io/gathered.ts";
import { kvLeases } from "../../shared/io/kv-leases.ts";
import { type NatsConnection, respond } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import { orderServer } from "../../shared/io/room-moves.ts";
import { type Leases, NOBODY } from "../../shared/lease.ts";
import type { Millis } from "../../shared/ids.ts";
import type { LostServer } from "../operations/servers-lost.ts";
import type { Fleet } from "../ports.ts";
import { askedLately } from "./asked-lately.ts";

/** However many consoles are open, the others are asked once a second. */
const KEPT_MS = 1_000;
/** The one lease that placement has. */
const LEASE = 0;
/** A leader renews its lease several times within this. */
const LEADER_SILENCE_MS_MAX = 10_000;
/** Somebody waits for the answer, which says more than who leads. */
const LEADER_ANSWER_MS_MAX = 2_000;

export type FleetOptions = { readonly logReplicas: number };

export function natsFleet(
  nats: NatsConnection,
  subjects: Subjects,
  heard: { readonly servers: () => readonly ServerHeartbeat[]; readonly serversLost: () => readonly LostServer[] },
  { logReplicas }: FleetOptions,
  clock: Clock,
): Fleet {
  const ask = (question: GatewayQuestion): Promise<GatewayAccount[]> =>
    gather(nats, subjects.askGateways, encodeJson(question), GatewayAccount);
  let leases: Promise<Leases> | undefined;
  let seen: { readonly revision: number; readonly at: Millis } | undefined;

  /** A lease that stands still is nobody's: a leader that was killed gives none back. */
  const readLeader = async (): Promise<string | undefined> => {
    leases ??= kvLeases(jetstream(nats, { timeout: LEADER_ANSWER_MS_MAX }), subjects.placementBucket, logReplicas);
    leases.catch(() => (leases = undefined)); // Tried anew when it is asked again.
    const read = await leases.then((bucket) => bucket.read(LEASE)).catch(undefinedIfSilent);
    if (read === undefined) return undefined;
    const { lease, revision } = read;
    if (seen?.revision !== revision) seen = { revision, at: clock.now() };
    if (lease === undefined || lease.holder === NOBODY || clock.now() - seen.at > LEADER_SILENCE_MS_MAX) return undefined;
    return lease.holder;
  };

  return {
    ...heard,
    gateways: askedLately(async () => (await ask({})).sort((a, b) => (a.gateway < b.gateway ? -1 : 1)), KEPT_MS, clock),
    leader: askedLately(readLeader, KEPT_MS, clock),
    drainGateway: async (gateway) => (await ask({ drain: gateway })).find((account) => account.gateway === gateway),
    drainServer: (server) => orderServer({ nats, subjects }, server, { kind: "drain" }),
  };
}

/** NATS, or its log, does not answer. */
function undefinedIfSilent(error: unknown): undefined {
  if (!isNoAnswer(error)) throw error;
}

/** This gateway's own answers. */
export function answerGatewayQuestions(nats: NatsConnection, subjects: Subjects, account: () => GatewayAccount, drain: () => void): void {
  hear(nats, subjects.askGateways, GatewayQuestion, (question, msg) => {
    if (question.drain === account().gateway) drain();
    respond(msg, encodeJson(account()));
  });
}
