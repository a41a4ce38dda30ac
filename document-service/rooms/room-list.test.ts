import { expect, test } from "vitest";

import type { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { type RoomId, roomOf, type Seq, type TenantId } from "../../shared/ids.ts";
import type { RoomLogEnd } from "../ports.ts";
import { listRooms, type RoomListPorts } from "./room-list-host.ts";

const TENANT = "acme" as TenantId;
const AT: RoomLogEnd = { kind: "at", seq: 7 as Seq };
const CHECKPOINT = { seq: 5, time: 1_000, snapshot: { object: "o", bytes: 300, sha256: "" } } as CheckpointEntry;

/** `ends`: each room's end of the log. `looked`: the rooms that were read. */
function storeOf(ends: Readonly<Record<string, RoomLogEnd>>, checkpoints: Readonly<Record<string, CheckpointEntry>> = {}) {
  const looked: RoomId[] = [];
  const ports: RoomListPorts = {
    names: { roomsOf: async () => Object.keys(ends) as RoomId[] },
    log: {
      end: async (key) => {
        looked.push(roomOf(key));
        return ends[roomOf(key)]!;
      },
    },
    checkpoints: { read: async (key) => ({ checkpoint: checkpoints[roomOf(key)], revision: 1 }) },
  };
  return { ports, looked };
}

test("[LIST1] a page has the rooms with edits in order, with what their newest snapshot includes", async () => {
  const ends = {
    plan: AT,
    notes: AT,
    empty: { kind: "at", seq: 0 as Seq },
    gone: { kind: "deleted", streamSeq: 3 },
    left: { kind: "empty" },
    wiping: AT,
  } as Record<string, RoomLogEnd>;
  const deleted = { deleted: true, time: 1_000 } as CheckpointEntry;
  const { ports } = storeOf(ends, { notes: CHECKPOINT, wiping: deleted });
  expect(await listRooms(TENANT, { after: "", prefix: "", limit: 10 }, ports)).toEqual({
    rooms: [
      { room: "notes", seq: 7, snapshot: { seq: 5, time: 1_000, bytes: 300 } },
      { room: "plan", seq: 7 },
    ],
    next: undefined,
  });
});

test("[LIST2] pages of any size together have every room once", async () => {
  const names = Array.from({ length: 230 }, (_, index) => `room-${index}`);
  const ends = Object.fromEntries(names.map((name, index): [string, RoomLogEnd] => [name, index % 3 === 0 ? { kind: "empty" } : AT]));
  const { ports } = storeOf({ ...ends, other: AT });
  for (const limit of [1, 7, 60, 153, 1_000]) {
    const found: string[] = [];
    for (let after: string | undefined = ""; after !== undefined;) {
      const { rooms, next }: Awaited<ReturnType<typeof listRooms>> = await listRooms(TENANT, { after, prefix: "room-", limit }, ports);
      expect(rooms.length).toBeLessThanOrEqual(limit);
      found.push(...rooms.map(({ room }) => room));
      after = next;
    }
    expect(found).toEqual(names.filter((name) => ends[name]!.kind === "at").sort());
  }
});

test("[LIST3] a request looks at no more than 2,000 names, and the next page continues behind them", async () => {
  const names = Array.from({ length: 2_500 }, (_, index) => `room-${10_000 + index}`);
  const { ports, looked } = storeOf(Object.fromEntries(names.map((name) => [name, { kind: "deleted", streamSeq: 1 }])));
  const { rooms, next } = await listRooms(TENANT, { after: "", prefix: "", limit: 100 }, ports);
  expect([rooms, next, looked.length]).toEqual([[], "room-11999", 2_000]);
  expect((await listRooms(TENANT, { after: next!, prefix: "", limit: 100 }, ports)).next).toBeUndefined();
});

test("[LIST4] a room whose checkpoint does not decode is listed without a snapshot; a checkpoint that cannot be read fails the list", async () => {
  const { ports } = storeOf({ damaged: AT, notes: AT }, { notes: CHECKPOINT });
  const failing = (cause: Error): RoomListPorts => {
    const read: RoomListPorts["checkpoints"]["read"] = (key) =>
      roomOf(key) === "damaged" ? Promise.reject(cause) : ports.checkpoints.read(key);
    return { ...ports, checkpoints: { read } };
  };
  const query = { after: "", prefix: "", limit: 10 };
  expect((await listRooms(TENANT, query, failing(new UndecodableEntry("a newer version wrote it")))).rooms).toEqual([
    { room: "damaged", seq: 7 },
    { room: "notes", seq: 7, snapshot: { seq: 5, time: 1_000, bytes: 300 } },
  ]);
  await expect(listRooms(TENANT, query, failing(new Error("NATS is away")))).rejects.toThrow("NATS is away");
});

test("[LIST5] a room whose last record does not decode is listed without its seq; a log that cannot be read fails the list", async () => {
  const { ports } = storeOf(
    { damaged: AT, new: AT, notes: AT, wiped: AT },
    { damaged: CHECKPOINT, wiped: { deleted: true, time: 1_000 } as CheckpointEntry },
  );
  const failing = (cause: Error): RoomListPorts => {
    const end: RoomListPorts["log"]["end"] = (key) => (roomOf(key) === "notes" ? ports.log.end(key) : Promise.reject(cause));
    return { ...ports, log: { end } };
  };
  const query = { after: "", prefix: "", limit: 10 };
  expect((await listRooms(TENANT, query, failing(new UndecodableEntry("a newer version wrote it")))).rooms).toEqual([
    { room: "damaged", snapshot: { seq: 5, time: 1_000, bytes: 300 } },
    { room: "new" },
    { room: "notes", seq: 7 },
  ]);
  await expect(listRooms(TENANT, query, failing(new Error("NATS is away")))).rejects.toThrow("NATS is away");
});
