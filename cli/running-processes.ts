/**
 * Finds the processes of an environment that run. A command that needs a stopped system announces itself as a process
 * that works with no other, so that every process answers it. Heartbeats show processes that do not answer, such as
 * those of an earlier release. A paused process shows nothing: it ends when it continues (`bus-process.ts`).
 */

import { setTimeout } from "node:timers/promises";

import { ProcessAnnouncement, processName } from "../shared/bus/bus-version.ts";
import { encodeJson } from "../shared/bus/json-messages.ts";
import type { Subjects } from "../shared/bus/subjects.ts";
import { VITALS_EVERY_MS } from "../shared/bus/vitals.ts";
import { subscribeJson } from "../shared/io/nats-json.ts";
import { type NatsConnection, publish } from "../shared/io/nats.ts";
import { StartError } from "../shared/process/lifecycle.ts";
import { ownAnnouncement } from "./bus-process.ts";

/** The longest interval of a heartbeat, and time for a busy event loop. */
const LISTEN_MS = VITALS_EVERY_MS + 1_000;
/** A bus version that no other release works with. */
const WITH_NONE = Number.MAX_SAFE_INTEGER;
const NAMED_MAX = 10;

/** Throws a StartError that names the processes. `command`: the command that needs a stopped system. */
export async function refuseRunningProcesses(nats: NatsConnection, subjects: Subjects, command: string): Promise<void> {
  const own = { ...ownAnnouncement([command]), bus: { version: WITH_NONE, oldest: WITH_NONE }, isStarting: true };
  const answered = new Map<string, ProcessAnnouncement>();
  const beating = new Set<string>();
  let failure: Error | undefined;
  const receiveError = (error: Error | null): void => void (failure ??= error ?? undefined);
  const receiveAnswer = (other: ProcessAnnouncement): void => {
    if (other.id !== own.id) answered.set(other.id, other);
  };
  const answers = subscribeJson(nats, subjects.processes, ProcessAnnouncement, receiveAnswer, { receiveOther: receiveError });
  const subjectOf = {
    "room-server": subjects.servers,
    "gateway": subjects.gateways,
    "document-service": subjects.documents,
    "leaderboard": subjects.leaderboards,
    "process": subjects.vitals,
  };
  const heartbeats = Object.entries(subjectOf).map(([role, subject]) =>
    nats.subscribe(subject, { callback: (error) => (error === null ? void beating.add(role) : receiveError(error)) }),
  );
  try {
    await nats.flush();
    publish(nats, subjects.processes, encodeJson(own));
    await setTimeout(LISTEN_MS);
    await nats.flush();
  } finally {
    for (const subscription of [answers, ...heartbeats]) subscription.unsubscribe();
  }
  if (failure !== undefined)
    throw new StartError(
      `cannot find running processes: ${failure.message}. Set COROOM_NATS_URL to the user of the operator (coroom nats-users prints its permissions)`,
      { cause: failure },
    );
  if (answered.size + beating.size === 0) return;
  for (const { roles } of answered.values()) for (const role of [...roles, "process"]) beating.delete(role); // Heartbeats of roles that answered add nothing.
  if (beating.size > 1) beating.delete("process"); // Every role sends to this subject.
  const named = [
    ...[...answered.values()].map(processName),
    ...[...beating].map((role) => `a ${role} that sends to ${subjectOf[role as keyof typeof subjectOf]}`),
  ];
  const more = named.length > NAMED_MAX ? `, and ${named.length - NAMED_MAX} more` : "";
  throw new StartError(
    `${command} needs a stopped system, and these run: ${named.slice(0, NAMED_MAX).join("; ")}${more}. Stop all processes of the environment but NATS and Redis (of a local system: run "coroom start --roles engines" instead), and run this command again`,
  );
}
