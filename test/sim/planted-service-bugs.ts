/** Bugs in the document service and the leaderboard that the simulator must find: see `planted-bugs.ts`. */

import type { Fault } from "./faults.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import type { Size } from "./sizes.ts";

/** A snapshot counts as durable once it is written: the service takes what it wrote for what the store has, and trims behind it. */
const snapshotNotReadBack: PlantedBug = {
  name: "snapshot not read back",
  documentService: (ports) => {
    const written = new Map<string, Uint8Array>();
    return {
      ...ports,
      snapshots: {
        ...ports.snapshots,
        write: (name, bytes) => (written.set(name, bytes), ports.snapshots.write(name, bytes)),
        read: (name) => Promise.resolve(written.get(name)),
      },
    };
  },
  faults: ({ faultyMs }: Size): readonly Fault[] => [{ kind: "object store damages writes", atMs: 100, forMs: faultyMs, whom: 0, how: 0 }],
};

/** A batch counts wherever the boards are: its writer does not check up to which seq they were counted. */
const appliedSeqUnchecked: PlantedBug = {
  name: "applied seq unchecked",
  leaderboard: (ports) => ({
    ...ports,
    boards: {
      ...ports.boards,
      apply: async (room, batch) => {
        const write = await ports.boards.apply(room, batch);
        return write.kind === "stale" ? ports.boards.apply(room, { ...batch, after: write.counted }) : write;
      },
    },
  }),
  /** Whoever counts is paused with a batch in hand, for longer than its lease; another counts meanwhile. */
  faults: ({ faultyMs }: Size): readonly Fault[] =>
    [0.1, 0.9].map((whom, index): Fault => ({
      kind: "leaderboard paused",
      atMs: Math.floor((0.12 + 0.66 * index) * faultyMs),
      forMs: 1_600,
      whom,
      how: 0.1,
    })),
};

/** They show only where document services and leaderboards run. */
export const PLANTED_SERVICE_BUGS: readonly PlantedBug[] = [snapshotNotReadBack, appliedSeqUnchecked];
