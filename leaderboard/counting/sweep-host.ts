/**
 * Looks, now and then, for checkpoints' objects that a crash left without an entry that names them. Of all partitions
 * one does it for all.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Log } from "../../shared/log.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";
import type { Checkpoints } from "../ports.ts";

/** And the age at which an object without a name counts as left behind: whoever writes one has named it long before. */
const SWEEP_MS = 3_600_000;
const RETRY_MS = 1_000;

export async function sweepCheckpoints(
  checkpoints: Pick<Checkpoints, "sweep">,
  { clock, log, mayBegin }: { clock: Clock; log: Log; mayBegin: () => boolean },
  signal: AbortSignal,
): Promise<void> {
  while (!mayBegin() && !signal.aborted) await pause(clock, RETRY_MS, signal);
  while (!signal.aborted) {
    try {
      const swept = await checkpoints.sweep(SWEEP_MS);
      if (swept > 0) log.info({ swept }, "removed checkpoints of boards that a crash had left without an entry");
    } catch (cause) {
      unlessMistake(cause);
      log.warn({ cause }, "a look for what a crash left behind of the boards' checkpoints was not finished");
    }
    await pause(clock, SWEEP_MS, signal);
  }
}
