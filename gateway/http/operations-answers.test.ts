import { expect, test } from "vitest";

import type { ListedRoom } from "../../shared/bus/fleet-messages.ts";
import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { cursorText, parseCursor } from "./operations-requests.ts";
import type { Identity } from "../sessions/identity.ts";
import { maySeeEvent, pageOf } from "./operations-answers.ts";

const listed = (room: string, participants: number, more: Partial<ListedRoom> = {}): ListedRoom => ({
  room: room as RoomKey,
  server: "rs-1",
  epoch: 1,
  mode: "flat",
  participants,
  gateways: 1,
  editsPerSecond: 0,
  heldBack: 0,
  ...more,
});
const rooms = (page: ReturnType<typeof pageOf>) => page.rooms.map(({ room }) => room);

test("[RPG1] the rooms of all servers form one list, which is cut at the page's end with a cursor to the next page", () => {
  const page = pageOf(
    [
      { rooms: [listed("a.x", 9), listed("a.y", 2)], matching: 40 },
      { rooms: [listed("a.z", 5)], matching: 1 },
    ],
    2,
  );
  expect(rooms(page)).toEqual(["a.x", "a.z"]);
  expect(page).toMatchObject({ matching: 41, servers: 2, next: { participants: 5, room: "a.z" } });
  expect(pageOf([{ rooms: [listed("a.x", 9)], matching: 1 }], 2)).not.toHaveProperty("next");
  expect(pageOf([], 2)).toEqual({ rooms: [], matching: 0, servers: 0 });
});

test("[RPG2] a room that two servers list belongs to the later epoch", () => {
  const page = pageOf(
    [
      { rooms: [listed("a.x", 9, { epoch: 4 })], matching: 1 },
      { rooms: [listed("a.x", 0, { epoch: 5, server: "rs-2" })], matching: 1 },
    ],
    10,
  );
  expect(page.rooms).toEqual([listed("a.x", 0, { epoch: 5, server: "rs-2" })]);
  expect(page.matching, "counted once").toBe(1);
});

test("[RPG3] a cursor that is encoded as text decodes to the same cursor, and other text is refused", () => {
  const cursor = { participants: 12, room: "acme.notes=20today" as RoomKey };
  expect(parseCursor(cursorText(cursor))).toEqual(cursor);
  for (const text of ["", "12", "12:", ":acme.notes", "-1:acme.notes", "12:no key", "1e3:acme.notes"])
    expect(parseCursor(text)).toBeUndefined();
});

test("[RPG4] an administrator sees the events of its tenant and its tenant's rooms, and an operator sees all", () => {
  const events = [
    { kind: "room_claimed", room: "acme.notes" },
    { kind: "room_claimed", room: "globex.notes" },
    { kind: "tenant_storage", tenant: "acme" },
    { kind: "tenant_storage", tenant: "globex" },
    { kind: "placement_leads" },
  ] as unknown as OperationsEvent[];
  const seenBy = (authority: Identity | undefined) => events.map((event) => maySeeEvent(event, authority));
  expect(seenBy({ tenant: "acme" } as unknown as Identity)).toEqual([true, false, true, false, false]);
  expect(seenBy(undefined)).toEqual([true, true, true, true, true]);
});
