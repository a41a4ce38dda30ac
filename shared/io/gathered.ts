/** One question to all who hear it, and their answers as they come. */

import { errors, type NatsConnection, type RequestManyOptions } from "nats";
import type { z } from "zod";

import { decodeJson } from "../bus/json-messages.ts";

/** Answers come within moments of each other: once nobody has answered for so long, nobody will. */
export const GATHERED = { strategy: "stall", stall: 300, maxWait: 2_000 } as const;

/** Where it is known how many will answer nobody waits for more. */
const COUNTED_MS_MAX = 1_000;

/** None: nobody is there, or the line is down or closing. */
export function gather<Answer>(nats: NatsConnection, subject: string, question: Uint8Array, schema: z.ZodType<Answer>): Promise<Answer[]> {
  return collect(nats, subject, question, schema, GATHERED);
}

/** The same of `count`, as soon as they have answered; those that have within a second. */
export async function gatherFrom<Answer>(
  nats: NatsConnection,
  subject: string,
  question: Uint8Array,
  schema: z.ZodType<Answer>,
  count: number,
): Promise<Answer[]> {
  return count === 0 ? [] : collect(nats, subject, question, schema, { strategy: "count", maxMessages: count, maxWait: COUNTED_MS_MAX });
}

async function collect<Answer>(
  nats: NatsConnection,
  subject: string,
  question: Uint8Array,
  schema: z.ZodType<Answer>,
  how: Partial<RequestManyOptions>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  try {
    for await (const msg of await nats.requestMany(subject, question, how)) {
      const answer = decodeJson(schema, msg.data);
      if (answer !== undefined) answers.push(answer);
    }
  } catch (error) {
    if (!isNoAnswer(error)) throw error;
  }
  return answers;
}

/** Nobody there, too slow, or the line is down or closing. */
export function isNoAnswer(error: unknown): boolean {
  return [
    errors.RequestError,
    errors.NoRespondersError,
    errors.TimeoutError,
    errors.ConnectionError,
    errors.ClosedConnectionError,
    errors.DrainingConnectionError,
  ].some((expected) => error instanceof expected);
}
