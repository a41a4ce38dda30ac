/** Reads operations' events: the newest that were kept, then each as it happens, without a hole between the two. */

import { DeliverPolicy, jetstream } from "@nats-io/jetstream";

import { decodeJson } from "../bus/json-messages.ts";
import { OperationsEvent } from "../bus/operations-events.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { NatsConnection } from "./nats.ts";

/** `last`: how many of those kept come first. Ends with `signal`. Events of a kind that this version does not know are left out. */
export async function* watchOperations(nats: NatsConnection, subjects: Subjects, last: number, signal: AbortSignal): AsyncIterable<OperationsEvent> {
  const client = jetstream(nats);
  const { state } = await (await client.jetstreamManager()).streams.info(subjects.operationsStream);
  const first = Math.max(state.first_seq, state.last_seq + 1 - last, 1);
  const consumer = await client.consumers.get(subjects.operationsStream, { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: first });
  const messages = await consumer.consume();
  const stop = (): void => messages.stop();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  for await (const message of messages) {
    const event = decodeJson(OperationsEvent, message.data);
    if (event !== undefined) yield event;
  }
}
