/** The changes of mode that operations were told of, in order. */

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { closeNats, connectNats } from "../../shared/io/nats.ts";
import { watchOperations } from "../../shared/io/watch-operations.ts";
import { eventually } from "./eventually.ts";

export type ModeTransition = OperationsEvent & { kind: "mode_transition" };

const EVENTS_MAX = 1_000;

/** All that are kept, once there are so many. */
export async function modeTransitions(natsUrl: string, environment: string, atLeast: number): Promise<ModeTransition[]> {
  const nats = await connectNats({ servers: natsUrl, name: "transitions" });
  const enough = new AbortController();
  const seen: ModeTransition[] = [];
  const reading = (async () => {
    for await (const event of watchOperations(nats, subjectsOf(environment), EVENTS_MAX, enough.signal)) if (event.kind === "mode_transition") seen.push(event);
  })();
  await eventually(`operations are told of ${atLeast} transitions`, () => seen.length >= atLeast);
  enough.abort();
  await reading;
  await closeNats(nats);
  return seen;
}
