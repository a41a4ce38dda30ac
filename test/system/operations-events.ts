/** The operations events, in order. */

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { watchOperations } from "../../shared/io/nats-operations.ts";
import { closeNats, connectNats } from "../../shared/io/nats.ts";
import { eventually } from "./eventually.ts";

const EVENTS_MAX = 1_000;

type Of<Kind extends OperationsEvent["kind"]> = OperationsEvent & { kind: Kind };

/** All stored events of one kind, as soon as there are this many. */
export async function operationsEvents<Kind extends OperationsEvent["kind"]>(
  natsUrl: string,
  environment: string,
  kind: Kind,
  atLeast: number,
): Promise<Of<Kind>[]> {
  const nats = await connectNats({ servers: natsUrl, name: "operations-events" });
  const enough = new AbortController();
  const seen: Of<Kind>[] = [];
  const isOfKind = (event: OperationsEvent): event is Of<Kind> => event.kind === kind;
  const reading = (async () => {
    for await (const event of watchOperations(nats, subjectsOf(environment), EVENTS_MAX, enough.signal))
      if (isOfKind(event)) seen.push(event);
  })();
  await eventually(`there are ${atLeast} events of the kind ${kind}`, () => seen.length >= atLeast);
  enough.abort();
  await reading;
  await closeNats(nats);
  return seen;
}
