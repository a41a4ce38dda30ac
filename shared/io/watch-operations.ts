/** Reads operations' events: the newest that were kept, then each as it happens, without a hole between the two. */

import { DeliverPolicy, jetstream } from "@nats-io/jetstream";

import { decodeJson } from "../bus/json-messages.ts";
import { OperationsEvent } from "../bus/operations-events.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { NatsConnection } from "./nats.ts";

/** `seq`: in the stream. `event`: undefined for one of a kind that this version does not know. */
export type NumberedEvent = { readonly seq: number; readonly event: OperationsEvent | undefined };

/** `last`: how many of those kept come first. Ends with `signal`. Events of a kind that this version does not know are left out. */
export async function* watchOperations(
  nats: NatsConnection,
  subjects: Subjects,
  last: number,
  signal: AbortSignal,
): AsyncIterable<OperationsEvent> {
  for await (const { event } of watchNumbered(nats, subjects, last, signal)) if (event !== undefined) yield event;
}

/** `onBegun`: told the seq of the newest event that is kept, 0 for none, before any comes. */
export async function* watchNumbered(
  nats: NatsConnection,
  subjects: Subjects,
  last: number,
  signal: AbortSignal,
  onBegun: (newest: number) => void = () => {},
): AsyncIterable<NumberedEvent> {
  const client = jetstream(nats);
  const { state } = await (await client.jetstreamManager()).streams.info(subjects.operationsStream);
  onBegun(state.messages === 0 ? 0 : state.last_seq);
  const first = Math.max(state.first_seq, state.last_seq + 1 - last, 1);
  const consumer = await client.consumers.get(subjects.operationsStream, {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: first,
  });
  const messages = await consumer.consume();
  const stop = (): void => messages.stop();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  for await (const message of messages) yield { seq: message.seq, event: decodeJson(OperationsEvent, message.data) };
}
