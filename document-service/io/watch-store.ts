/**
 * Examines the database of objects while the process runs, for `/readyz` and the alert. Without it, a stopped database
 * is noticed only by the next room that is opened or saved, which may be much later.
 */

import { StartError } from "../../shared/process/lifecycle.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { StoreSettings } from "../config.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";

const CHECK_MS = 5_000;

type StoreWatchDeps = {
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "error" | "info">;
  readonly metrics: Pick<DocumentServiceMetrics, "storeUnusable">;
};

/** `obstacle`: the reason why the store cannot be used, as of the last check. The other kinds of stores have no check. */
export function watchStore(
  { snapshotsStore, postgresUrl }: Pick<StoreSettings, "snapshotsStore" | "postgresUrl">,
  { clock, log, metrics }: StoreWatchDeps,
): { readonly obstacle: () => string | undefined; readonly stop: () => void } {
  if (snapshotsStore !== "postgres") return { obstacle: () => undefined, stop: () => {} };
  let obstacle: string | undefined;
  let isStopped = false;
  const check = async (): Promise<void> => {
    const found = await postgresObstacle(postgresUrl);
    if (isStopped) return;
    if (found !== undefined && obstacle === undefined) log.error({ obstacle: found }, "the store of snapshots cannot be used");
    if (found === undefined && obstacle !== undefined) log.info({}, "the store of snapshots can be used again");
    obstacle = found;
    metrics.storeUnusable.set(found === undefined ? 0 : 1);
    checkLater();
  };
  let cancel = (): void => {};
  const checkLater = (): void => {
    cancel = clock.after(CHECK_MS, () => void check());
  };
  checkLater();
  return {
    obstacle: () => obstacle,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}

async function postgresObstacle(url: string): Promise<string | undefined> {
  const { checkPostgres } = await import("./postgres-connection.ts"); // Other stores do not load its library.
  try {
    const { where, hasTable } = await checkPostgres(url);
    return hasTable
      ? undefined
      : `the PostgreSQL server at ${where} has no table coroom_objects. Restore it from a backup; a restart creates an empty one`;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.message;
  }
}
