/**
 * Whether this gateway spreads rooms over as many parts as the log does. A gateway that starts first of all finds no log
 * that could say so, and asks until there is one: with another number it would name parts where nobody counts.
 */

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import { SettingError } from "../../shared/config.ts";
import { checkLogPartitions } from "../../shared/io/log-stream.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";

export type LogParts = { readonly areOthers: () => boolean; readonly stop: () => void };

const ASK_AGAIN_MS = 1_000;

/** Throws a SettingError where the log is there, and has another number. */
export async function logParts(
  nats: NatsConnection,
  subjects: Subjects,
  partitions: number,
  { clock, log }: { clock: Clock; log: Log },
): Promise<LogParts> {
  let areOthers = false;
  let isStopped = false;
  let callOff = (): void => {};
  const askLater = (): void => {
    if (!isStopped) callOff = clock.after(ASK_AGAIN_MS, ask);
  };
  const ask = (): void => {
    checkLogPartitions(nats, subjects, partitions).then(
      (isSaid) => isSaid || askLater(),
      (cause: unknown) => {
        unlessMistake(cause);
        areOthers = cause instanceof SettingError;
        if (areOthers)
          log.error(
            { cause },
            "this gateway takes no connections: it was started with another COROOM_LOG_PARTITIONS than the deployment's",
          );
        else askLater(); // NATS does not answer now.
      },
    );
  };
  if (!(await checkLogPartitions(nats, subjects, partitions))) askLater();
  return {
    areOthers: () => areOthers,
    stop: () => {
      isStopped = true;
      callOff();
    },
  };
}
