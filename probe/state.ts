/** What is as it is, beside what is counted as it happens: said by kind of room, the worst of each. */

import type { Millis } from "../shared/ids.ts";
import type { ProbeMetrics } from "./metrics.ts";
import { KINDS } from "./plan.ts";
import type { ProbedRoom } from "./room-host.ts";

/** `delayMs`: how late the probe itself is. */
export function tellState(
  rooms: readonly Pick<ProbedRoom, "plan" | "away" | "oldestMs">[],
  delayMs: number,
  now: Millis,
  metrics: ProbeMetrics,
): void {
  for (const kind of KINDS) {
    const alike = rooms.filter(({ plan }) => plan.kind === kind);
    metrics.oldestEditSeconds.set({ room: kind }, Math.max(0, ...alike.map((room) => room.oldestMs(now))) / 1_000);
    metrics.away.set(
      { room: kind },
      alike.reduce((sum, { away }) => sum + away, 0),
    );
  }
  metrics.loopDelaySeconds.set(delayMs / 1_000);
}
