/** One question over NATS, with one answer or none in time. */

import { errors } from "nats";
import type { z } from "zod";

import { decodeJson, encodeJson } from "../bus/placement-messages.ts";
import type { NatsConnection } from "./nats.ts";

/** Undefined: nobody is there, the answer takes too long or is not one, or the line is down or closing. */
export async function askNats<Reply>(nats: NatsConnection, subject: string, request: unknown, schema: z.ZodType<Reply>, timeoutMs: number): Promise<Reply | undefined> {
  try {
    return decodeJson(schema, (await nats.request(subject, encodeJson(request), { timeout: timeoutMs })).data);
  } catch (error) {
    if (isNoAnswer(error)) return undefined;
    throw error;
  }
}

function isNoAnswer(error: unknown): boolean {
  return [errors.RequestError, errors.NoRespondersError, errors.TimeoutError, errors.ConnectionError, errors.ClosedConnectionError, errors.DrainingConnectionError].some((expected) => error instanceof expected);
}
