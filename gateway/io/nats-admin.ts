/** Sanctions and orders between gateways, over core NATS: told to all, or asked of all and gathered. */

import type { NatsConnection } from "nats";
import { z } from "zod";

import { Order, OrderAnswer, type RoomMember, Sanction } from "../../shared/bus/admin-messages.ts";
import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { GatewayId } from "../../shared/ids.ts";
import { inParts } from "../../shared/in-parts.ts";
import { GATHERED, isNoAnswer } from "../../shared/io/gathered.ts";
import { crashing, respond, say } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import type { Orders, SanctionsLine } from "../ports.ts";

const Sanctions = z.array(Sanction);
/** Half of what NATS carries in one message by default. */
const ANSWER_BYTES_MAX = 524_288;
/** What one answer carries at most; more sanctions than that are known from having been told. */
const ANSWER_SANCTIONS_MAX = 2_000;

export function natsSanctions(nats: NatsConnection, subjects: Subjects, gateway: GatewayId): SanctionsLine {
  return {
    tell: (sanction) => say(nats, subjects.sanctions, encodeJson(sanction)),
    onTold: (receive) => void hear(nats, subjects.sanctions, Sanction, receive),
    ask: async () => {
      const known: Sanction[] = []; // Of all together: the first to answer may just have started, and know none.
      try {
        for await (const msg of await nats.requestMany(subjects.allSanctions, gateway, GATHERED))
          known.push(...(decodeJson(Sanctions, msg.data) ?? []));
      } catch (error) {
        if (!isNoAnswer(error)) throw error;
      }
      return known;
    },
    onAsked: (answer) => {
      nats.subscribe(subjects.allSanctions, {
        callback: crashing((error, msg) => {
          if (error === null && msg.string() !== gateway) respond(msg, encodeJson(inAnswers(answer().slice(0, ANSWER_SANCTIONS_MAX))[0]));
        }),
      });
    },
  };
}

export function natsOrders(nats: NatsConnection, subjects: Subjects): Orders {
  return {
    issue: async (order) => {
      const outcome = { kicked: 0, members: [] as RoomMember[], gateways: 0 };
      for await (const msg of await nats.requestMany(subjects.orders, encodeJson(order), GATHERED)) {
        const answer = decodeJson(OrderAnswer, msg.data);
        if (answer === undefined) continue;
        outcome.kicked += answer.kicked;
        outcome.members.push(...answer.members);
        if (answer.isPart === undefined) outcome.gateways += 1;
      }
      return outcome;
    },
    onOrder: (carryOut) => {
      hear(nats, subjects.orders, Order, (order, msg) => {
        const { kicked, members } = carryOut(order);
        const answers = inAnswers(members);
        answers.forEach((part, index) => {
          const isLast = index === answers.length - 1;
          respond(
            msg,
            encodeJson({ kicked: isLast ? kicked : 0, members: part, ...(isLast ? {} : { isPart: true }) } satisfies OrderAnswer),
          );
        });
      });
    },
  };
}

/** One at the least. */
function inAnswers<Item>(items: readonly Item[]): Item[][] {
  const parts = inParts(items, (item) => encodeJson(item).byteLength + 1, ANSWER_BYTES_MAX);
  return parts.length === 0 ? [[]] : parts;
}
