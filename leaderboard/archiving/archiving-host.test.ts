import { expect, test } from "vitest";

import type { RoomKey, Seq, TenantId, UnixMillis } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { Undecodable } from "../../shared/undecodable.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { parseWindow } from "../boards/windows.ts";
import { archiveWindow, type ArchivingPorts } from "./archiving-host.ts";
import { archiveClosed } from "./closed-host.ts";
import { archiveTenants, type TenantArchivingPorts } from "./tenant-archiving-host.ts";

const DAY_MS = 86_400_000;
const [ROOM, TENANT, WINDOW] = ["acme.notes" as RoomKey, "acme" as TenantId, parseWindow("2028-12-30")!];
const NOW = { wallNow: (WINDOW.end + 60_000) as UnixMillis, confirm: () => Promise.resolve() };
const OPTIONS = { boardRoles: ["everyone"] as const, boardArchivedMax: 10, boardArchiveGraceMs: 0, logPartitions: 1 };
const [BEFORE_LONG, LONG] = [NOW.wallNow + 60_000, WINDOW.start + 2 * DAY_MS];

/** A room, and a tenant, with a point in the window. `kept`: until when what is in the archive is to be in Redis. */
function world(outcome: "written" | "there"): { ports: ArchivingPorts & TenantArchivingPorts; kept: number[] } {
  const applied = { ...NOTHING_APPLIED, seq: 1 as Seq };
  const standing = { member: "ann", score: 1, reachedAt: 1 };
  const kept: number[] = [];
  const finish = (until: number): Promise<void> => Promise.resolve(void kept.push(until));
  const ports = {
    boards: { load: () => Promise.resolve({ applied, uses: NO_USES }) },
    reads: {
      read: () => Promise.resolve({ members: 1, points: 1 }),
      all: async function* () {
        yield [standing];
      },
    },
    checkpoints: { mark: () => Promise.resolve({ seq: 0, activity: 0, windows: [], revision: 0, isDeleted: false }) },
    closings: { finish: (_: number, __: object, until: number) => finish(until) },
    archive: { write: () => Promise.resolve(outcome) },
    tenants: { page: () => Promise.resolve({ rooms: 1, people: 1, ranking: [] }) },
    closedTenants: {
      due: () => Promise.resolve([{ tenant: TENANT, window: WINDOW }]),
      finish: (_: object, until: number) => finish(until),
    },
    tenantArchive: { write: () => Promise.resolve(outcome) },
    progress: { read: () => Promise.resolve({ service: "a", through: NOW.wallNow, told: NOW.wallNow, isRebuilding: false }) },
  };
  return { ports: ports as unknown as ArchivingPorts & TenantArchivingPorts, kept };
}

test.each([
  ["written", LONG],
  ["there", BEFORE_LONG],
] as const)(
  "[ARC1] a window whose archive is %s is kept in Redis long or for a minute, a room's and a tenant's",
  async (outcome, until) => {
    const { ports, kept } = world(outcome);
    expect(await archiveWindow({ room: ROOM, window: WINDOW }, 0, ports, OPTIONS, NOW)).toBe(outcome);
    expect(await archiveTenants(ports, OPTIONS, NOW)).toEqual([outcome]);
    expect(kept).toEqual([until, until]);
  },
);

test("[ARC2] however many windows of rooms aside wait to be archived, those of the others are", async () => {
  const { ports, kept } = world("written");
  const aside = new Set<RoomKey>();
  const waiting = [...Array.from({ length: 1_000 }, (_, index) => `acme.aside${index}` as RoomKey), ROOM].map((room) => ({
    room,
    window: WINDOW,
  }));
  const mark = (room: RoomKey) => (room === ROOM ? ports.checkpoints.mark(room) : Promise.reject(new Undecodable("it does not decode")));
  const closings = { ...ports.closings, due: (_: number, __: UnixMillis, countMax: number) => Promise.resolve(waiting.slice(0, countMax)) };
  const [clock, over] = [new FakeClock(NOW.wallNow), new AbortController()];
  const deps = {
    clock,
    metrics: { archived: { inc: () => {} } } as never,
    through: () => NOW.wallNow,
    confirm: NOW.confirm,
    restore: () => Promise.resolve(),
    onArchived: () => over.abort(),
    isAside: (room: RoomKey) => aside.has(room),
    setAside: (room: RoomKey) => void aside.add(room),
  };
  const archiving = archiveClosed(
    1,
    { ...ports, checkpoints: { mark }, closings },
    { ...OPTIONS, boardCheckpointWritesMax: 4 },
    deps,
    over.signal,
  );
  for (let looks = 0; looks < 20 && !over.signal.aborted; looks++) await clock.advance(1_000);
  expect([kept.length, aside.size]).toEqual([1, 1_000]);
  over.abort();
  await archiving;
});
