/**
 * The process on the bus, before any of its roles takes part: it refuses stored data and running processes that this
 * release cannot work with, and answers processes that start later. It has a connection to NATS of its own, because a
 * process can have several roles.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import type { ProcessAnnouncement } from "../shared/bus/bus-version.ts";
import type { NatsRole } from "../shared/bus/permissions.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { joinBus } from "../shared/io/bus-announcements.ts";
import { checkLogBus } from "../shared/io/log-stream.ts";
import { closeNats, connectAs } from "../shared/io/nats.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { thisRelease } from "../shared/io/version.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import type { StartConfig } from "./settings.ts";

/** What this process announces about itself. */
export function ownAnnouncement(roles: readonly string[]): Omit<ProcessAnnouncement, "isStarting"> {
  const host = hostname()
    .slice(0, 64)
    .replace(/[^!-~]/g, "?");
  return { ...thisRelease(), id: randomUUID(), roles: [...roles], host, pid: process.pid };
}

/** `role`: the role whose user of NATS the connection has. Throws a StartError that names the remedy. */
export async function startBusProcess(config: StartConfig, role: NatsRole, log: Log): Promise<Running> {
  const subjects = subjectsOf(config.environment);
  const own = ownAnnouncement(config.roles);
  const nats = await connectAs(role, `process ${own.pid} on ${own.host}`, config);
  try {
    if (!(await checkLogBus(nats, subjects, own)))
      log.warn({}, "this process cannot check the bus version of the log. Print the users of NATS again (coroom nats-users)");
    await joinBus(nats, subjects, own, { clock, log });
  } catch (error) {
    await closeNats(nats);
    throw error;
  }
  return { stop: stopOnce(() => closeNats(nats)) };
}
