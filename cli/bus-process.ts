/**
 * The process on the bus, before any of its roles takes part: it refuses stored data and running processes that this
 * release cannot work with, and answers processes that start later. It has a connection to NATS of its own, because a
 * process can have several roles.
 *
 * A process that was paused or cut off during a split of the log ends, because it would use the former partitions.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { jetstreamManager } from "@nats-io/jetstream";

import type { ProcessAnnouncement } from "../shared/bus/bus-version.ts";
import { isSplitAway } from "../shared/bus/log-partitions.ts";
import type { NatsRole } from "../shared/bus/permissions.ts";
import { type Subjects, subjectsOf } from "../shared/bus/subjects.ts";
import { joinBus } from "../shared/io/bus-announcements.ts";
import { checkLogBus, checkLogPartitions, statedPartitions } from "../shared/io/log-stream.ts";
import { closeNats, connectAs, isForbidden, type NatsConnection } from "../shared/io/nats.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { thisRelease } from "../shared/io/version.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { pause } from "../shared/time/pause.ts";
import type { StartConfig } from "./settings.ts";

/** What this process announces about itself. */
export function ownAnnouncement(roles: readonly string[]): Omit<ProcessAnnouncement, "isStarting"> {
  const host = hostname()
    .slice(0, 64)
    .replace(/[^!-~]/g, "?");
  return { ...thisRelease(), id: randomUUID(), roles: [...roles], host, pid: process.pid };
}

const SPLIT_CHECK_MS = 10_000;

/**
 * A function that ends this process if the log was split into other partitions meanwhile. A split that only copies
 * records may still find this process, and be cancelled, so the check is repeated.
 */
function splitCheck(nats: NatsConnection, subjects: Subjects, partitions: number, log: Log): () => void {
  let isChecking = false;
  const check = async (): Promise<void> => {
    for (const manager = await jetstreamManager(nats); !nats.isClosed(); await pause(clock, SPLIT_CHECK_MS)) {
      const stated = await statedPartitions(manager, subjects);
      if (isSplitAway(stated, partitions)) {
        log.error({ partitions, stated }, "the log was split into other partitions while this process was paused or cut off: it ends");
        process.exit(1); // A graceful stop would write to the former partitions.
      }
      if (stated?.kind !== "copying") return;
    }
  };
  return () => {
    if (isChecking) return;
    isChecking = true;
    check()
      .catch((cause: unknown) => {
        if (!isForbidden(cause)) log.warn({ cause }, "cannot check whether the log was split meanwhile; the next reconnect checks again");
      })
      .finally(() => (isChecking = false));
  };
}

/** `role`: the role whose user of NATS the connection has. Throws a StartError that names the remedy. */
export async function startBusProcess(config: StartConfig, role: NatsRole, log: Log): Promise<Running> {
  const subjects = subjectsOf(config.environment);
  const own = ownAnnouncement(config.roles);
  const nats = await connectAs(role, `process ${own.pid} on ${own.host}`, config);
  try {
    if (await checkLogBus(nats, subjects, own)) await checkLogPartitions(nats, subjects, config.logPartitions);
    else log.warn({}, "this process cannot check the bus version of the log. Print the users of NATS again (coroom nats-users)");
    const checkSplit = splitCheck(nats, subjects, config.logPartitions, log);
    await joinBus(nats, subjects, own, { clock, log, receiveStranger: checkSplit });
    void (async () => {
      for await (const { type } of nats.status()) if (type === "reconnect") checkSplit();
    })();
  } catch (error) {
    await closeNats(nats);
    throw error;
  }
  return { stop: stopOnce(() => closeNats(nats)) };
}
