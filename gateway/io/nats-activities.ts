/** Activities into their stream, each stored once: JetStream knows the ids of the last minutes. */

import { errors, headers } from "nats";
import { z } from "zod";

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Activities, Told } from "../ports.ts";

const ANSWER_MS_MAX = 3_000;
/** The stream keeps to its limit. */
const STORE_FAILED = 10_077;

/** What JetStream answers to whoever publishes. */
const Answer = z.object({ duplicate: z.boolean().default(false), error: z.object({ err_code: z.number() }).optional() });

export function natsActivities(
  nats: NatsConnection,
  subjects: Subjects,
  { logPartitions, mayTell = () => true }: { logPartitions: number; mayTell?: () => boolean },
): Activities {
  return {
    tell: async (room, activity, id) => {
      if (!mayTell()) return "unavailable"; // It would be told where nobody counts it for its room.
      const named = headers();
      named.set("Nats-Msg-Id", `${room} ${id}`);
      try {
        const { data } = await nats.request(subjects.activity(partitionOf(room, logPartitions), room), encodeJson(activity), {
          headers: named,
          timeout: ANSWER_MS_MAX,
        });
        return toldBy(decodeJson(Answer, data));
      } catch (error) {
        // No stream is there yet, no answer came in time, or the line is lost.
        if (
          error instanceof errors.RequestError ||
          error instanceof errors.TimeoutError ||
          error instanceof errors.ClosedConnectionError ||
          error instanceof errors.ConnectionError
        )
          return "unavailable";
        throw error;
      }
    },
  };
}

function toldBy(answer: z.infer<typeof Answer> | undefined): Told {
  if (answer === undefined) return "unavailable";
  if (answer.error !== undefined) return answer.error.err_code === STORE_FAILED ? "full" : "unavailable";
  return answer.duplicate ? "known" : "stored";
}
