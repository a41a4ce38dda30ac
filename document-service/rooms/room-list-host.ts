/**
 * Reads one page of a tenant's stored rooms. The log keeps at least one record of every room, so its subjects name all
 * rooms. Any document service can answer, because a list needs no room in memory.
 */

import type { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { type RoomKey, roomKey, type TenantId } from "../../shared/ids.ts";
import type { Checkpoints, RoomNames, StoredRoomLog } from "../ports.ts";
import { RoomList, type RoomListPage, type RoomListQuery, tenantRoom } from "./room-list.ts";

export type RoomListPorts = {
  readonly names: RoomNames;
  readonly log: Pick<StoredRoomLog, "end">;
  readonly checkpoints: Pick<Checkpoints, "read">;
};

export async function listRooms(tenant: TenantId, query: RoomListQuery, { names, log, checkpoints }: RoomListPorts): Promise<RoomListPage> {
  const readCheckpoint = (key: RoomKey): Promise<CheckpointEntry | undefined> =>
    checkpoints.read(key).then(({ checkpoint }) => checkpoint, missingIfUndecodable);
  const list = new RoomList(await names.roomsOf(tenant), query);
  while (list.wanted.length > 0) {
    const found = await Promise.all(
      list.wanted.map(async (room) => {
        const key = roomKey(tenant, room);
        const [end, checkpoint] = await Promise.all([log.end(key).catch(missingIfUndecodable), readCheckpoint(key)]);
        return tenantRoom(room, end, checkpoint);
      }),
    );
    list.receiveFound(found);
  }
  return list.page;
}

/** The room waits for a person, and must not take the list of all other rooms with it. */
function missingIfUndecodable(cause: unknown): undefined {
  if (!(cause instanceof UndecodableEntry)) throw cause;
}
