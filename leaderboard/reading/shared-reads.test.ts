/** Readers of one moment share what is read for the first of them. */

import { expect, test } from "vitest";

import type { TenantId, UnixMillis } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { tenantBoard } from "../boards/keys.ts";
import { WINDOW_KINDS } from "../boards/windows.ts";
import { BoardReader } from "./reads-host.ts";

const PARTITIONS = 4;
const PUSH_MS = 500;

function readerOf() {
  const clock = new FakeClock(Date.UTC(2026, 6, 2, 12));
  const reads = { boards: 0, progress: [] as number[], isDown: false };
  const none = () => expect.unreachable();
  const read = <Content>(content: Content): Promise<Content> =>
    reads.isDown ? Promise.reject(new Error("Redis is away")) : Promise.resolve(content);
  const reader = new BoardReader(
    {
      reads: {
        read: () => {
          reads.boards += 1;
          const hot = [{ member: "ann", score: 1, reachedAt: 1 }];
          return read({ applied: undefined, hot, members: 1, points: 1, bands: new Map(), isOrdered: false });
        },
        members: none,
        places: none,
        all: none,
      },
      archive: { write: none, remove: none, read: none },
      progress: {
        read: (partition) => {
          reads.progress.push(partition);
          return read({ service: "s", through: clock.now() as number as UnixMillis, totalsSent: 7 as UnixMillis, isRebuilding: false });
        },
      },
    },
    {
      logPartitions: PARTITIONS,
      boardRoles: ["everyone"],
      boardWindows: WINDOW_KINDS,
      boardReadMembersMax: 20,
      boardBehindMsMax: 5_000,
      boardPushMs: PUSH_MS,
    },
    clock,
  );
  const ask = (tenant = "acme") =>
    reader.page(
      { owner: tenantBoard(tenant as TenantId, "people"), role: "everyone", window: "day", ranking: "unique" },
      { offset: 0, limit: 10 },
    );
  return { clock, reads, ask };
}

test("[BSHARE1] readers of a tenant's board within the push interval cost one read of the board and of each partition's progress", async () => {
  const { clock, reads, ask } = readerOf();
  for (const answer of await Promise.all(Array.from({ length: 1_000 }, () => ask())))
    expect(answer).toMatchObject({ kind: "page", ranking: [{ user: "ann" }], about: { isBehind: false, asOf: { time: 7 } } });
  await ask("globex"); // The progress is that of all tenants.
  expect(reads).toMatchObject({ boards: 2, progress: [0, 1, 2, 3] });
  clock.turn(PUSH_MS - 1);
  await ask();
  expect(reads).toMatchObject({ boards: 2, progress: [0, 1, 2, 3] });
  clock.turn(1);
  await ask();
  expect(reads).toMatchObject({ boards: 3, progress: [0, 1, 2, 3, 0, 1, 2, 3] });
});

test("[BSHARE2] a failed read is not shared with later readers", async () => {
  const { reads, ask } = readerOf();
  reads.isDown = true;
  for (const outcome of await Promise.allSettled([ask(), ask()])) expect(outcome.status).toBe("rejected");
  reads.isDown = false;
  expect(await ask()).toMatchObject({ kind: "page" });
  expect(reads.boards).toBe(2);
});
