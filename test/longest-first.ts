/**
 * The order of test files in their group. On a checkout where vitest has not run before, it sorts them by size. Then a
 * short file with a long test begins last, and the other workers wait for it.
 */

import { BaseSequencer, type TestSequencer, type TestSpecification, type Vitest } from "vitest/node";

/** Files that took more than 15 s on two cores, the longest of each group first. Add a file that takes as long. */
export const LONG_FILES: readonly string[] = [
  "test/sim/simulation.sim.test.ts",
  "test/fuzz/fuzz.test.ts",
  "client/persistence/kept-convergence.test.ts",
  "client/room/convergence.test.ts",
  "test/system/upgrade.system.test.ts",
  "cli/bench/bench.system.test.ts",
  "release/release.system.test.ts",
  "leaderboard/unreadable-checkpoint.system.test.ts",
  "test/system/split-log.system.test.ts",
  "cli/split-log/split-log.system.test.ts",
  "cli/split-log/split-streams.system.test.ts",
  "test/system/moves.system.test.ts",
  "test/system/full-log.system.test.ts",
  "docs/site.system.test.ts",
  "test/system/other-clients.system.test.ts",
  "client/package.system.test.ts",
  "leaderboard/restored-redis.system.test.ts",
  "examples/editors.system.test.ts",
  "test/chaos/chaos.system.test.ts",
  "test/system/replay.system.test.ts",
  "test/system/chaos-replay.system.test.ts",
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
