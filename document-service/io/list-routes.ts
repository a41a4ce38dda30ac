/** The HTTP route that lists a tenant's stored rooms: GET /v1/rooms?after=&prefix=&limit= */

import { parseTenantId } from "../../shared/ids.ts";
import { jsonResponse, refusal } from "../../shared/io/internal-http.ts";
import { parseWholeNumber } from "../../shared/limits/whole-number.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import { LISTED_ROOMS_MAX, type TenantRoom } from "../rooms/room-list.ts";
import { listRooms, type RoomListPorts } from "../rooms/room-list-host.ts";
import type { TenantRoute } from "./http.ts";

const LIMIT = 100;
const NAME_LENGTH_MAX = 128;
const BAD_PAGE = refusal(
  400,
  "bad-page",
  `limit is 1 to ${LISTED_ROOMS_MAX}, in decimal digits; after is \`next\` of the page before; prefix is the beginning of a room's name, at most ${NAME_LENGTH_MAX} characters`,
);
const UNAVAILABLE = refusal(503, "unavailable", "the log or the checkpoints do not answer right now: ask again");

export function listRoute(ports: RoomListPorts, log: Pick<Log, "warn">): TenantRoute {
  return async ({ method, tenant: tenantText, query }) => {
    if (method !== "GET") return refusal(405, "method-not-allowed", "this takes GET");
    const tenant = parseTenantId(tenantText);
    const [after, prefix, limit] = [
      query.get("after") ?? "",
      query.get("prefix") ?? "",
      parseWholeNumber(query.get("limit") ?? String(LIMIT)),
    ];
    const isInRange = limit !== undefined && limit >= 1 && limit <= LISTED_ROOMS_MAX;
    if (tenant === undefined || !isInRange || Math.max(after.length, prefix.length) > NAME_LENGTH_MAX) return BAD_PAGE;
    try {
      const { rooms, next } = await listRooms(tenant, { after, prefix, limit }, ports);
      return jsonResponse(200, "rooms", { rooms: rooms.map(shown), ...(next === undefined ? {} : { next }) });
    } catch (cause) {
      rethrowMistake(cause);
      log.warn({ tenant, cause }, "the rooms of a tenant could not be listed; the caller asks again");
      return UNAVAILABLE;
    }
  };
}

function shown({ room, seq, snapshot }: TenantRoom) {
  return {
    room,
    ...(seq === undefined ? {} : { seq }),
    ...(snapshot === undefined ? {} : { snapshot: { ...snapshot, time: new Date(snapshot.time).toISOString() } }),
  };
}
