/**
 * Finds the processes of an environment that run. A command that needs a stopped system announces itself as a process
 * that works with no other, so that every process answers it. Heartbeats show processes that do not answer, such as
 * those of an earlier release. A paused process shows nothing: it ends when it continues (`cli/bus-process.ts`).
 */

import { setTimeout } from "node:timers/promises";

import { ProcessAnnouncement, processName } from "../../shared/bus/bus-version.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { VITALS_EVERY_MS } from "../../shared/bus/vitals.ts";
import { subscribeJson } from "../../shared/io/nats-json.ts";
import { type NatsConnection, publish } from "../../shared/io/nats.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import { ownAnnouncement } from "../bus-process.ts";

/** The longest interval of a heartbeat, and time for a busy event loop. */
const LISTEN_MS = VITALS_EVERY_MS + 1_000;
/** A bus version that no other release works with. */
const WITH_NONE = Number.MAX_SAFE_INTEGER;
const NAMED_MAX = 10;

/** Throws a StartError that names the processes. `command`: the command that needs a stopped system. */
export async function refuseRunningProcesses(nats: NatsConnection, subjects: Subjects, command: string): Promise<void> {
  const own = { ...ownAnnouncement([command]), bus: { version: WITH_NONE, oldest: WITH_NONE }, isStarting: true };
  const found = new Map<string, string>();
  const answers = subscribeJson(nats, subjects.processes, ProcessAnnouncement, (other) => {
    if (other.id !== own.id) found.set(other.id, processName(other));
  });
  const heartbeats = Object.entries({
    "room-server": subjects.servers,
    "gateway": subjects.gateways,
    "document-service": subjects.documents,
    "leaderboard": subjects.leaderboards,
    "process": subjects.vitals,
  }).map(([role, subject]) => nats.subscribe(subject, { callback: () => void found.set(subject, `a ${role} that sends to ${subject}`) }));
  try {
    await nats.flush();
    publish(nats, subjects.processes, encodeJson(own));
    await setTimeout(LISTEN_MS);
    await nats.flush();
  } finally {
    for (const subscription of [answers, ...heartbeats]) subscription.unsubscribe();
  }
  if (found.size === 0) return;
  const named = [...found.values()];
  const more = named.length > NAMED_MAX ? `, and ${named.length - NAMED_MAX} more` : "";
  throw new StartError(
    `${command} needs a stopped system, and these run: ${named.slice(0, NAMED_MAX).join("; ")}${more}. Stop all processes of the environment but NATS and Redis, and run this command again`,
  );
}
