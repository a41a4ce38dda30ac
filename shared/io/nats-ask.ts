/** One question over NATS, with one answer or none in time. */

import { errors } from "nats";
import type { z } from "zod";

import { decodeJson, encodeJson } from "../bus/json-messages.ts";
import type { ServerOrder } from "../bus/placement-messages.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { ServerId } from "../ids.ts";
import { isNoAnswer } from "./gathered.ts";
import type { NatsConnection } from "./nats.ts";

/** Undefined: nobody is there, the answer takes too long or is not one, or the line is down or closing. */
export async function askNats<Reply>(
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

const THERE_MS_MAX = 250;

/** Whether NATS says that no room server of this name is connected. One that is paused is: its silence proves nothing. */
export async function isServerGone(nats: NatsConnection, subjects: Subjects, server: ServerId): Promise<boolean> {
  try {
    await nats.request(subjects.order(server), encodeJson({ kind: "show-presence" } satisfies ServerOrder), { timeout: THERE_MS_MAX });
    return false;
  } catch (error) {
    if (isNoAnswer(error)) return error instanceof errors.RequestError && error.isNoResponders();
    throw error;
  }
}
