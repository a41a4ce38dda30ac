/** What placement needs from the world. `io/` implements each. */

import type {
  ClaimReply,
  ClaimRequest,
  LocateReply,
  LocateRequest,
  OrderReply,
  PlannedRoom,
  RoomEntry,
  RoomPin,
  ServerHeartbeat,
  ServerOrder,
} from "../shared/bus/placement-messages.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";

export interface Rooms {
  /** The room's entry as its last owner wrote it. Throws when the bucket does not answer. */
  entry(room: RoomKey): Promise<RoomEntry | undefined>;
  /**
   * Every entry there is, then each as it changes; undefined: it is gone. Resolves once every one there was has been
   * told, however long the bucket does not answer.
   */
  onEntry(receive: (room: RoomKey, entry: RoomEntry | undefined) => void): Promise<void>;
}

/** What was planned, by whoever leads. */
export interface Plans {
  /** As rooms' entries. */
  onEntry(receive: (room: RoomKey, planned: PlannedRoom | undefined) => void): Promise<void>;
  /** Undefined: nothing any more. Throws when the bucket does not answer. */
  write(room: RoomKey, planned: PlannedRoom | undefined): Promise<void>;
}

export interface Pins {
  /** As rooms' entries. */
  onEntry(receive: (room: RoomKey, pin: RoomPin | undefined) => void): Promise<void>;
}

export interface Questions {
  /** Each question is answered by one of the placement processes. */
  onLocate(answer: (request: LocateRequest) => Promise<LocateReply>): void;
  onHeartbeat(receive: (heartbeat: ServerHeartbeat) => void): void;
}

/** Undefined: no answer in time. */
export interface RoomServers {
  claim(server: ServerId, request: ClaimRequest): Promise<ClaimReply | undefined>;
  order(server: ServerId, order: ServerOrder): Promise<OrderReply | undefined>;
}
