/** What placement needs from the world. `io/` implements each. */

import type { LocateReply, LocateRequest, RoomEntry, ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { RoomKey } from "../shared/ids.ts";

export interface Rooms {
  /** The room's entry as its last owner wrote it. Throws when the bucket does not answer. */
  entry(room: RoomKey): Promise<RoomEntry | undefined>;
}

export interface Questions {
  /** Each question is answered by one of the placement processes. */
  onLocate(answer: (request: LocateRequest) => Promise<LocateReply>): void;
  onHeartbeat(receive: (heartbeat: ServerHeartbeat) => void): void;
}
