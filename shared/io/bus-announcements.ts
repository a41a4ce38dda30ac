/**
 * Announces a starting process to all others, which answer if they cannot work with it. While no process starts, nothing
 * is sent. NATS may lose a message, and a paused process does not answer: the vitals show such a process afterwards.
 *
 * If two processes start at once, at least one receives the announcement of the other, because each subscribes before
 * it announces itself.
 */

import { canWorkTogether, ProcessAnnouncement, processName, refusalBeside } from "../bus/bus-version.ts";
import { encodeJson } from "../bus/json-messages.ts";
import type { Subjects } from "../bus/subjects.ts";
import { StartError } from "../process/lifecycle.ts";
import type { Log } from "../process/log.ts";
import type { Clock } from "../time/clock.ts";
import { pause } from "../time/pause.ts";
import { subscribeJson } from "./nats-json.ts";
import { type NatsConnection, publish } from "./nats.ts";

/** Time in which all nats-servers of a cluster learn the subscription. */
const INTEREST_MS = 100;
/** Answers arrive within milliseconds, unless the event loop of a process is busy. */
const ANSWERS_MS = 400;
/** A process answers at most this often, however many processes start. */
const ANSWER_EVERY_MS = 50;
/** The error names three of them. */
const ANSWERS_MAX = 100;

type JoinOptions = {
  readonly clock: Clock;
  readonly log: Log;
  readonly receiveStranger?: () => void;
  readonly receiveForbidden?: (error: Error) => void;
};

/**
 * Throws a StartError if a running process cannot work with this one. Afterwards this process answers others, until the
 * connection closes. `receiveStranger`: one of them starts that cannot work with this process. `receiveForbidden`: the
 * NATS user may not receive announcements, so nothing was checked. By default this is logged.
 */
export async function joinBus(
  nats: NatsConnection,
  subjects: Subjects,
  own: Omit<ProcessAnnouncement, "isStarting">,
  { clock, log, receiveStranger = () => {}, receiveForbidden = (error) => logUnchecked(log, error) }: JoinOptions,
): Promise<void> {
  const strangers = new Map<string, ProcessAnnouncement>();
  let isStarting = true;
  let isAnswering = false;
  const announce = (): void => {
    isAnswering = false;
    publish(nats, subjects.processes, encodeJson({ ...own, isStarting } satisfies ProcessAnnouncement));
  };
  const receive = (other: ProcessAnnouncement): void => {
    if (other.id === own.id || canWorkTogether(own.bus, other.bus)) return;
    if (isStarting && strangers.size < ANSWERS_MAX) strangers.set(other.id, other);
    if (isStarting || !other.isStarting) return;
    receiveStranger();
    if (isAnswering) return;
    const { release, bus } = other;
    log.warn({ process: processName(other), release, bus }, "a process that cannot work with this one is starting: it is refused");
    isAnswering = true;
    clock.after(ANSWER_EVERY_MS, announce);
  };
  const receiveOther = (error: Error | null): void => {
    if (error !== null) receiveForbidden(error);
  };
  const subscription = subscribeJson(nats, subjects.processes, ProcessAnnouncement, receive, { receiveOther });
  await nats.flush();
  await pause(clock, INTEREST_MS);
  announce();
  await pause(clock, ANSWERS_MS);
  await nats.flush(); // The event loop may have been busy: answers that have arrived are read first.
  isStarting = false;
  const refusal = refusalBeside(own, [...strangers.values()]);
  if (refusal === undefined) return;
  subscription.unsubscribe();
  throw new StartError(refusal);
}

function logUnchecked(log: Log, error: Error): void {
  log.warn({ error }, "this process cannot check the bus versions of others. Print the users of NATS again (coroom nats-users)");
}
