/**
 * The order of test files in their group. On a checkout where vitest has not run before, it sorts them by size. Then a
 * short file with a long test begins last, and the other workers wait for it.
 */

import { BaseSequencer, type TestSequencer, type TestSpecification, type Vitest } from "vitest/node";

/**
 * The longest files of each group, the longest first. In the group `system`, files with a browser lie between others:
 * a browser uses half of a core, and the others mostly wait. Add a file that takes more than 20 s on two cores.
 */
export const LONG_FILES: readonly string[] = [
  "test/sim/simulation.sim.test.ts",
  "test/sim/planted-bugs.sim.test.ts",
  "react/hooks.test.ts",
  "shared/io/jetstream-stores.test.ts",
  "document-service/document-service.sim.test.ts",
  "test/fuzz/fuzz.test.ts",

  "test/system/upgrade.system.test.ts",
  "bridges/bridges.system.test.ts",
  "test/system/two-pages.system.test.ts",
  "gateway/gateway.system.test.ts",
  "test/system/split-log.system.test.ts",
  "test/system/operations-page.system.test.ts",
  "test/system/moves.system.test.ts",
  "probe/probe.system.test.ts",
  "test/system/board-page.system.test.ts", // Waits for the next hour at the end of an hour.
  "cli/restore.system.test.ts",
  "leaderboard/unreadable-checkpoint.system.test.ts",
  "test/system/presence-page.system.test.ts",
  "test/system/stored-bytes.system.test.ts",
  "cli/ops-placement.system.test.ts",
  "test/system/kept-page.system.test.ts",
  "deploy/alerts.system.test.ts",
  "test/system/canvas-page.system.test.ts",
  "cli/bench/bench.system.test.ts",
  "deploy/balancer/haproxy.system.test.ts",
  "test/system/stalled-connection.system.test.ts",
  "docs/site.system.test.ts",
  "test/system/restored-log.system.test.ts",
  "test/system/full-log.system.test.ts",
  "test/system/first-content.system.test.ts",
  "examples/examples.system.test.ts",
  "release/release.system.test.ts",
  "gateway/limits/limits.system.test.ts",
  "cli/package.system.test.ts",
  "test/system/hostile-edits.system.test.ts",
  "gateway/operations.system.test.ts",
  "test/system/renewal.system.test.ts",
  "cli/import.system.test.ts",
  "client/package.system.test.ts",
  "test/system/edit-trace.system.test.ts",
  "leaderboard/leaderboard.system.test.ts",
  "test/system/bus-version.system.test.ts",
  "cli/split-log/split-log.system.test.ts",
  "cli/split-log/split-streams.system.test.ts",
  "leaderboard/restored-redis.system.test.ts",
  "leaderboard/counting/many-rooms.system.test.ts",

  "examples/editors.system.test.ts",
  "test/chaos/chaos.system.test.ts",
  "bench/scenarios.system.test.ts",
  "document-service/document-service.system.test.ts",
  "test/system/replay.system.test.ts",
  "document-service/rooms/kept-room.system.test.ts",
  "test/contract/object-store.system.test.ts",
  "test/system/chaos-replay.system.test.ts",
  "bench/hot-room.system.test.ts",

  "test/system/presence-kills.system.test.ts",
  "test/system/deleted-room.system.test.ts",
];

export class LongestFirst implements TestSequencer {
  readonly #bySize: BaseSequencer;

  constructor(vitest: Vitest) {
    this.#bySize = new BaseSequencer(vitest);
  }

  shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    return this.#bySize.shard(files);
  }

  async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await this.#bySize.sort(files);
    return sorted.toSorted((one, other) => placeOf(one.moduleId) - placeOf(other.moduleId));
  }
}

/** The place in `LONG_FILES`, or one behind them all. `path` is absolute, with slashes. */
function placeOf(path: string): number {
  const place = LONG_FILES.findIndex((file) => path.endsWith(`/${file}`));
  return place === -1 ? LONG_FILES.length : place;
}
