/**
 * Sanctions and admin commands between gateways over core NATS: published to all gateways, or requested from all with
 * the answers gathered.
 */

import type { NatsConnection } from "nats";
import { z } from "zod";

import { AdminCommand, AdminReply, type RoomMember, Sanction } from "../../../shared/bus/admin-messages.ts";
import { decodeJson, encodeJson } from "../../../shared/bus/json-messages.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import type { GatewayId } from "../../../shared/ids.ts";
import { splitBySize } from "../../../shared/collections/split-by-size.ts";
import { REQUEST_MANY, requestMany, subscribeJson } from "../../../shared/io/nats-json.ts";
import { crashing, respond, publish } from "../../../shared/io/nats.ts";
import type { AdminCommands, SanctionsBus } from "../../ports.ts";

const Sanctions = z.array(Sanction);
/** Half of what NATS carries in one message by default. */
const ANSWER_BYTES_MAX = 524_288;
/** Maximum number of sanctions in one answer. A gateway knows more than these only from publications. */
const ANSWER_SANCTIONS_MAX = 2_000;

export function natsSanctions(nats: NatsConnection, subjects: Subjects, gateway: GatewayId): SanctionsBus {
  return {
    publishSanction: (sanction) => publish(nats, subjects.sanctions, encodeJson(sanction)),
    onSanction: (receive) => void subscribeJson(nats, subjects.sanctions, Sanction, receive),
    // Gathers all answers, because the first gateway to answer may have just started and know no sanction.
    requestSanctions: async () => (await requestMany(nats, subjects.allSanctions, new TextEncoder().encode(gateway), Sanctions)).flat(),
    onRequest: (answer) => {
      nats.subscribe(subjects.allSanctions, {
        callback: crashing((error, msg) => {
          if (error === null && msg.string() !== gateway) respond(msg, encodeJson(inAnswers(answer().slice(0, ANSWER_SANCTIONS_MAX))[0]));
        }),
      });
    },
  };
}

/** `running`: the gateways that send vitals. Those of them that do not answer completely are silent. */
export function natsAdminCommands(
  nats: NatsConnection,
  subjects: Subjects,
  { gateway, running }: { readonly gateway: GatewayId; readonly running: () => readonly string[] },
): AdminCommands {
  return {
    issueCommand: async (command) => {
      const outcome = { kicked: 0, members: [] as RoomMember[], gateways: 0 };
      const answered = new Set<string | undefined>();
      for await (const msg of await nats.requestMany(subjects.orders, encodeJson(command), REQUEST_MANY)) {
        const answer = decodeJson(AdminReply, msg.data);
        if (answer === undefined) continue;
        outcome.kicked += answer.kicked;
        for (const member of answer.members) outcome.members.push(member); // As arguments of one call, too many end the process.
        if (answer.isPart !== undefined) continue;
        outcome.gateways += 1;
        answered.add(answer.gateway);
      }
      const silentGateways = answered.has(undefined) ? [] : running().filter((name) => !answered.has(name));
      return { ...outcome, silentGateways };
    },
    onCommand: (carryOut) => {
      subscribeJson(nats, subjects.orders, AdminCommand, (command, msg) => {
        const { kicked, members } = carryOut(command);
        const answers = inAnswers(members);
        answers.forEach((part, index) => {
          const isLast = index === answers.length - 1;
          respond(
            msg,
            encodeJson({ kicked: isLast ? kicked : 0, members: part, gateway, ...(isLast ? {} : { isPart: true }) } satisfies AdminReply),
          );
        });
      });
    },
  };
}

/** At least one part. */
function inAnswers<Item>(items: readonly Item[]): Item[][] {
  const parts = splitBySize(items, (item) => encodeJson(item).byteLength + 1, ANSWER_BYTES_MAX);
  return parts.length === 0 ? [[]] : parts;
}
