/** Says at a steady pace that this server is alive, and how it is. */

import type { ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { Clock } from "../shared/clock.ts";
import type { Peers } from "./ports.ts";

export function beatHeart(describe: () => Omit<ServerHeartbeat, "time">, peers: Peers, clock: Clock, heartbeatMs: number): () => void {
  let cancel = (): void => {};
  const beat = (): void => {
    peers.sayAlive({ ...describe(), time: clock.wallNow() });
    cancel = clock.after(heartbeatMs, beat);
  };
  beat();
  return () => cancel();
}
