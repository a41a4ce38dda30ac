/** The leaderboard's ports on a real redis-server. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { until } from "../../test/contract/real-nats.ts";
import { startTestRedis } from "../../test/contract/test-engines.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { ALL_TIME } from "../boards/windows.ts";
import { leaderboardSettings } from "../config.ts";
import { leaderboardMetrics } from "../metrics.ts";
import { redisPorts } from "./redis-ports.ts";

test("[RDP1] a reader of a board does not wait for all writes that were sent before", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-reads-"));
  const engine = await startTestRedis({ dataDir });
  const config = {
    ...readSettings({ ...sharedSettings, ...leaderboardSettings }, { env: {}, flags: {} }),
    redisUrl: engine.url,
  };
  const { ports, stop } = redisPorts(config, { clock: systemClock, log: SILENT_LOG, metrics: leaderboardMetrics(new Registry()) });
  await until(
    () =>
      ports.progress.read(0).then(
        () => true,
        () => false,
      ),
    "the connections to Redis",
  );
  let written = 0;
  const standings = Array.from({ length: 2_000 }, (_, user) => ({ member: `u${user}`, score: 1, reachedAt: 1 as UnixMillis }));
  const writes = Array.from({ length: 60 }, async (_, room) => {
    await ports.boards.restore(`bulk.r${room}` as RoomKey, {
      applied: { ...NOTHING_APPLIED, seq: 1 as Seq },
      uses: NO_USES,
      names: new Map(),
      boards: [{ role: "everyone", window: ALL_TIME, standings }],
    });
    written += 1;
  });
  await ports.reads.read("quiet.plan" as RoomKey, "everyone", ALL_TIME);
  await Promise.all([ports.names.read("quiet.plan" as RoomKey, ["ann"]), ports.progress.read(0)]);
  expect(written).toBeLessThan(30);
  await Promise.all(writes);
  stop();
  await engine.stop();
  rmSync(dataDir, { recursive: true, force: true });
});
