/** Sanctions and orders between gateways, over core NATS: told to all, or asked of all and gathered. */

import { errors, type NatsConnection } from "nats";
import { z } from "zod";

import { Order, OrderAnswer, Sanction } from "../../shared/bus/admin-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { GatewayId } from "../../shared/ids.ts";
import { crashing, respond, say } from "../../shared/io/nats.ts";
import type { Orders, SanctionsLine } from "../ports.ts";

const Sanctions = z.array(Sanction);
const ASK_MS_MAX = 2_000;
/** Answers come within moments of each other: once nobody has answered for so long, nobody will. */
const GATHER_QUIET_MS = 300;
const GATHER_MS_MAX = 2_000;
/** What one answer carries; more sanctions than that are known from having been told. */
const ANSWER_SANCTIONS_MAX = 2_000;

export function natsSanctions(nats: NatsConnection, subjects: Subjects, gateway: GatewayId): SanctionsLine {
  return {
    tell: (sanction) => say(nats, subjects.sanctions, encodeJson(sanction)),
    onTold: (receive) => {
      nats.subscribe(subjects.sanctions, {
        callback: crashing((error, msg) => {
          const sanction = error === null ? decodeJson(Sanction, msg.data) : undefined;
          if (sanction !== undefined) receive(sanction);
        }),
      });
    },
    ask: async () => {
      try {
        return decodeJson(Sanctions, (await nats.request(subjects.allSanctions, gateway, { timeout: ASK_MS_MAX })).data) ?? [];
      } catch (error) {
        if (isNoAnswer(error)) return [];
        throw error;
      }
    },
    onAsked: (answer) => {
      nats.subscribe(subjects.allSanctions, {
        callback: crashing((error, msg) => {
          if (error === null && msg.string() !== gateway) respond(msg, encodeJson(answer().slice(0, ANSWER_SANCTIONS_MAX)));
        }),
      });
    },
  };
}

export function natsOrders(nats: NatsConnection, subjects: Subjects): Orders {
  return {
    issue: async (order) => {
      const answers: OrderAnswer[] = [];
      for await (const msg of await nats.requestMany(subjects.orders, encodeJson(order), { strategy: "stall", stall: GATHER_QUIET_MS, maxWait: GATHER_MS_MAX })) {
        const answer = decodeJson(OrderAnswer, msg.data);
        if (answer !== undefined) answers.push(answer);
      }
      return answers;
    },
    onOrder: (carryOut) => {
      nats.subscribe(subjects.orders, {
        callback: crashing((error, msg) => {
          const order = error === null ? decodeJson(Order, msg.data) : undefined;
          if (order !== undefined) respond(msg, encodeJson(carryOut(order)));
        }),
      });
    },
  };
}

/** Nobody there, too slow, or the line is down or closing. */
function isNoAnswer(error: unknown): boolean {
  return [errors.RequestError, errors.NoRespondersError, errors.TimeoutError, errors.ConnectionError, errors.ClosedConnectionError, errors.DrainingConnectionError].some((expected) => error instanceof expected);
}
