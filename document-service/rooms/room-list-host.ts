/**
 * Reads one page of a tenant's stored rooms. The log keeps at least one record of every room, so its subjects name all
 * rooms. Any document service can answer, because a list needs no room in memory.
 */

import { roomKey, type TenantId } from "../../shared/ids.ts";
import type { Checkpoints, EditLog, RoomNames } from "../ports.ts";
import { RoomList, type RoomListPage, type RoomListQuery, tenantRoom } from "./room-list.ts";

export type RoomListPorts = {
  readonly names: RoomNames;
  readonly log: Pick<EditLog, "end">;
  readonly checkpoints: Pick<Checkpoints, "read">;
};

export async function listRooms(tenant: TenantId, query: RoomListQuery, { names, log, checkpoints }: RoomListPorts): Promise<RoomListPage> {
  const list = new RoomList(await names.roomsOf(tenant), query);
  while (list.wanted.length > 0) {
    const found = await Promise.all(
      list.wanted.map(async (room) => {
        const key = roomKey(tenant, room);
        const [end, { checkpoint }] = await Promise.all([log.end(key), checkpoints.read(key)]);
        return tenantRoom(room, end, checkpoint);
      }),
    );
    list.receiveFound(found);
  }
  return list.page;
}
