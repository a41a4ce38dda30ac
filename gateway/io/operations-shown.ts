/** Servers, rooms and what happened to them, as the operations console is shown them: names and dates that people read. */

import type { ListedRoom } from "../../shared/bus/fleet-messages.ts";
import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import { type RoomKey, roomOf, tenantOf } from "../../shared/ids.ts";
import type { Takeover } from "../operations/takeovers.ts";
import type { RoomDescription } from "../ports.ts";

export function shownServer({ server, rooms, draining, labels, load }: ServerHeartbeat): object {
  const { host = "", zone = "", pool = "" } = labels ?? {};
  return {
    server,
    rooms,
    draining,
    host,
    zone,
    pool,
    used: load?.used ?? 0,
    hot: (load?.hot ?? []).map(({ room, share }) => ({ ...namesOf(room), share })),
  };
}

export function shownListed({ room, ...facts }: ListedRoom): object {
  return { ...namesOf(room), ...facts };
}

/** Undefined: it is open nowhere. */
export function shownRoom(room: RoomKey, { account, planned, pin }: RoomDescription): object | undefined {
  if (account === undefined) return undefined;
  const { server, epoch, mode, shed, participants, presencePerSecond, gateways } = account;
  const placed =
    planned === undefined
      ? {}
      : {
          placed: {
            reason: planned.reason,
            at: dateOf(planned.at),
            ...(planned.replica === undefined ? {} : { replica: planned.replica }),
          },
        };
  return {
    ...namesOf(room),
    server,
    epoch,
    mode,
    participants,
    heldBack: shed,
    presencePerSecond,
    ...placed,
    ...(pin === undefined ? {} : { pin }),
    gateways: Object.entries(gateways).map(([gateway, members]) => ({ gateway, members })),
  };
}

export function shownEvent(seq: number, { at, ...event }: OperationsEvent): object {
  return { seq, at: dateOf(at), ...event, ...("room" in event ? namesOf(event.room) : {}) };
}

export function shownTakeover({ seq, first: { at, by, from, room }, count, rooms }: Takeover): object {
  return { seq, at: dateOf(at), by, from, tenant: tenantOf(room), count, rooms: rooms.map(roomOf) };
}

function namesOf(room: RoomKey): { readonly tenant: string; readonly room: string } {
  return { tenant: tenantOf(room), room: roomOf(room) };
}

export function dateOf(at: number): string {
  return new Date(at).toISOString();
}
