/** Asks placement and room servers by request and reply, and hears which room servers live, for when placement does not answer. */

import { errors } from "nats";
import type { z } from "zod";

import { ClaimReply, decodeJson, encodeJson, LocateReply, ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection } from "../../shared/io/nats.ts";
import { Membership } from "../../shared/membership.ts";
import { rendezvous } from "../../shared/rendezvous.ts";
import type { Placement } from "../ports.ts";

const LOCATE_MS_MAX = 500;
const CLAIM_MS_MAX = 2_000;
const LOOK_MS = 50;

export function natsPlacement(nats: NatsConnection, subjects: Subjects, options: { serverSilenceMsMax: number }, clock: Clock): Placement {
  const membership = new Membership({ silenceMsMax: options.serverSilenceMsMax });
  nats.subscribe(subjects.servers, {
    callback: crashing((error, msg) => {
      const heartbeat = error === null ? decodeJson(ServerHeartbeat, msg.data) : undefined;
      if (heartbeat !== undefined) membership.receiveHeartbeat(heartbeat, clock.now());
    }),
  });

  let receiveLost: (server: ServerId) => void = () => {};
  const look = (): void => {
    for (const server of membership.takeLost(clock.now())) receiveLost(server);
    cancelLook = clock.after(LOOK_MS, look);
  };
  let cancelLook = clock.after(LOOK_MS, look);
  void nats.closed().then(() => cancelLook());

  const ask = async <Reply>(subject: string, request: unknown, schema: z.ZodType<Reply>, timeoutMs: number): Promise<Reply | undefined> => {
    try {
      return decodeJson(schema, (await nats.request(subject, encodeJson(request), { timeout: timeoutMs })).data);
    } catch (error) {
      if (isNoAnswer(error)) return undefined;
      throw error;
    }
  };

  return {
    locate: (request) => ask(subjects.locate, request, LocateReply, LOCATE_MS_MAX),
    claim: (server, request) => ask(subjects.claim(server), request, ClaimReply, CLAIM_MS_MAX),
    candidates: (room) => rendezvous(room, membership.available(clock.now())),
    onServerLost: (receive) => (receiveLost = receive),
  };
}

/** Nobody there, too slow, or the line is down or closing. */
function isNoAnswer(error: unknown): boolean {
  return [errors.RequestError, errors.NoRespondersError, errors.TimeoutError, errors.ConnectionError, errors.ClosedConnectionError, errors.DrainingConnectionError].some((expected) => error instanceof expected);
}
