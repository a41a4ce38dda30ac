/** What others say on NATS as JSON, one schema a subject: the other end of `say` and `encodeJson`. */

import type { Msg, NatsConnection, Subscription } from "nats";
import type { z } from "zod";

import { decodeJson } from "../bus/json-messages.ts";
import { crashing } from "./nats.ts";

/** `receiveOther`: for what is no such message, with what NATS says is wrong with the subscription, if that is why; passed over unless given. `queue`: one of its members hears each. */
export type HearOptions = { readonly queue?: string; readonly receiveOther?: (error: Error | null) => void };

/** `receive` gets the message itself too, to answer it. */
export function hear<Message>(
  nats: Pick<NatsConnection, "subscribe">,
  subject: string,
  schema: z.ZodType<Message>,
  receive: (message: Message, msg: Msg) => void,
  { receiveOther, ...options }: HearOptions = {},
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
