/** JSON over NATS: a request with one reply, a request to many, and subscriptions with a schema. */

import { errors, type RequestManyOptions, type Msg, type Subscription } from "nats";
import type { z } from "zod";

import { decodeJson, encodeJson } from "../bus/json-messages.ts";
import type { ServerCommand } from "../bus/placement-messages.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { ServerId } from "../ids.ts";
import { crashing, type NatsConnection } from "./nats.ts";

/** Undefined: there is no subscriber, the reply is late or invalid, or the connection is down or closing. */
export async function requestReply<Reply>(
  nats: NatsConnection,
  subject: string,
  request: unknown,
  schema: z.ZodType<Reply>,
  timeoutMs: number,
): Promise<Reply | undefined> {
  try {
    return decodeJson(schema, (await nats.request(subject, encodeJson(request), { timeout: timeoutMs })).data);
  } catch (error) {
    if (isNoAnswer(error)) return undefined;
    throw error;
  }
}

/** NATS reports a missing subscriber much sooner. */
const GONE_MS_MAX = 250;

/** Whether NATS reports that this room server is not connected. A paused server is connected, so silence proves nothing. */
export async function isServerGone(nats: NatsConnection, subjects: Subjects, server: ServerId): Promise<boolean> {
  try {
    await nats.request(subjects.order(server), encodeJson({ kind: "show-presence" } satisfies ServerCommand), { timeout: GONE_MS_MAX });
    return false;
  } catch (error) {
    if (isNoAnswer(error)) return error instanceof errors.RequestError && error.isNoResponders();
    throw error;
  }
}

/** Replies arrive within moments of each other. After a pause this long no more are expected. */
export const REQUEST_MANY = { strategy: "stall", stall: 300, maxWait: 2_000 } as const;

/** Waiting ends when the known number of replies has arrived. */
const COUNTED_MS_MAX = 1_000;

/** Empty: there is no subscriber, or the connection is down or closing. */
export function requestMany<Answer>(
  nats: NatsConnection,
  subject: string,
  question: Uint8Array,
  schema: z.ZodType<Answer>,
): Promise<Answer[]> {
  return collect(nats, subject, question, schema, REQUEST_MANY);
}

/** Waits for a known number of replies, at least one, for up to one second. */
export function requestManyCounted<Answer>(
  nats: NatsConnection,
  subject: string,
  question: Uint8Array,
  schema: z.ZodType<Answer>,
  count: number,
): Promise<Answer[]> {
  return collect(nats, subject, question, schema, { strategy: "count", maxMessages: count, maxWait: COUNTED_MS_MAX });
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

/** No subscriber, a late reply, or a connection that is down or closing. */
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

/**
 * `receiveOther`: receives messages that do not match the schema, with the subscription's error if there is one;
 * ignored by default. `queue`: only one member of the queue receives each message.
 */
export type SubscribeJsonOptions = { readonly queue?: string; readonly receiveOther?: (error: Error | null) => void };

/** `receive` gets the message itself too, to answer it. */
export function subscribeJson<Message>(
  nats: Pick<NatsConnection, "subscribe">,
  subject: string,
  schema: z.ZodType<Message>,
  receive: (message: Message, msg: Msg) => void,
  { receiveOther, ...options }: SubscribeJsonOptions = {},
): Subscription {
  return nats.subscribe(subject, {
    ...options,
    callback: crashing((error, msg) => {
      const message = error === null ? decodeJson(schema, msg.data) : undefined;
      if (message === undefined) receiveOther?.(error);
      else receive(message, msg);
    }),
  });
}
