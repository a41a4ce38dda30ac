/** The ports of placement. `io/` implements each. */

import type {
  ClaimReply,
  ClaimRequest,
  LocateReply,
  LocateRequest,
  ServerCommandReply,
  PlannedRoom,
  RoomEntry,
  RoomPin,
  ServerHeartbeat,
  ServerCommand,
} from "../shared/bus/placement-messages.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";

export interface RoomEntryFeed {
  /** The entry that the room's last owner wrote. Throws when the bucket does not answer. */
  entry(room: RoomKey): Promise<RoomEntry | undefined>;
  /**
   * Delivers every existing entry, then each change; undefined: the entry was removed. Resolves once all existing
   * entries have been delivered, also after a long outage of the bucket.
   */
  onEntry(receive: (room: RoomKey, entry: RoomEntry | undefined) => void): Promise<void>;
}

/** The entries that the leader planned. */
export interface PlanEntries {
  /** Like the rooms' entries. */
  onEntry(receive: (room: RoomKey, planned: PlannedRoom | undefined) => void): Promise<void>;
  /** An entry of a newer plan stays. Throws when the bucket does not answer. */
  write(room: RoomKey, planned: PlannedRoom): Promise<void>;
  /** Removes the entry. False: it changed, or a later plan than `generation` wrote it. Throws when the bucket does not answer. */
  remove(room: RoomKey, generation: number): Promise<boolean>;
}

export interface RoomPins {
  /** Like the rooms' entries. */
  onEntry(receive: (room: RoomKey, pin: RoomPin | undefined) => void): Promise<void>;
}

export interface PlacementRequests {
  /** Each request is answered by one of the placement processes. */
  onLocate(answer: (request: LocateRequest) => Promise<LocateReply>): void;
  onHeartbeat(receive: (heartbeat: ServerHeartbeat) => void): void;
}

/** Undefined: no answer in time. */
export interface RoomServers {
  claim(server: ServerId, request: ClaimRequest): Promise<ClaimReply | undefined>;
  order(server: ServerId, order: ServerCommand): Promise<ServerCommandReply | undefined>;
}
