/** Says at a steady pace that this server is alive, and whether it takes new rooms. */

import type { Clock } from "../shared/clock.ts";
import type { ServerId } from "../shared/ids.ts";
import type { Peers } from "./ports.ts";

export function beatHeart(server: ServerId, state: { readonly rooms: number; readonly stopping: boolean }, peers: Peers, clock: Clock, heartbeatMs: number): () => void {
  let cancel = (): void => {};
  const beat = (): void => {
    peers.sayAlive({ server, rooms: state.rooms, draining: state.stopping, time: clock.wallNow() });
    cancel = clock.after(heartbeatMs, beat);
  };
  beat();
  return () => cancel();
}
