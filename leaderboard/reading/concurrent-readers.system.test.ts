/**
 * Readers while leaderboards that count the boards die and receive old records again. Every answer equals the reference
 * board of the edits that the answer reports as counted, including ties.
 */

import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import { eventually } from "../../test/system/eventually.ts";
import type { LeaderboardPorts } from "../leaderboard-host.ts";
import {
  counted,
  expectReference,
  LeaderboardRig,
  MINUTE_MS,
  NEW_YEARS_EVE,
  ROOMS,
  SCORING,
  SetClock,
  type Started,
  USERS,
} from "../testing/leaderboard-rig.ts";
import { FakeEditLog } from "../testing/fake-edit-log.ts";
import { referenceBoards } from "../testing/reference-boards.ts";
import { parseWindow } from "../boards/windows.ts";

const rig = LeaderboardRig.forThisFile();

/** Thirty reads, and more if the readers are slow. */
const ROUNDS_MAX = 300;

/** One batch in ten is written without an answer to the writer, and log records are delivered repeatedly. */
function harassed(prng: Prng): (ports: LeaderboardPorts) => LeaderboardPorts {
  return (ports) => ({
    ...ports,
    boards: {
      ...ports.boards,
      apply: async (room, batch) => {
        const write = await ports.boards.apply(room, batch);
        if (prng.below(10) === 0) throw new Error("the answer was lost");
        return write;
      },
    },
    log: {
      end: (partition) => ports.log.end(partition),
      readNow: (partition) => ports.log.readNow(partition),
      follow: async function* (partition, after, signal) {
        for await (const stored of ports.log.follow(partition, after, signal)) {
          yield stored;
          if (prng.below(4) === 0) yield stored;
        }
      },
    },
  });
}

/** Compares one board with the reference board of the edits that it counts. Returns the number of these edits. */
async function expectPrefix(log: FakeEditLog, { ports }: Started, prng: Prng): Promise<number> {
  const room = ROOMS[prng.below(ROOMS.length)]!;
  const id = ["all", "2028", "2028-12-31", "2028-12-31T23", "2029-01-01T00", "2029-W01"][prng.below(6)]!;
  const { applied, hot, members, points } = await ports.reads.read(room, "everyone", parseWindow(id)!);
  const standings = referenceBoards({ edits: log.editsOf(room).slice(0, applied?.seq ?? 0) }, SCORING).get(id) ?? [];
  expect(
    hot.map(({ member, score }) => ({ member, score })),
    `${room} ${id} at ${applied?.seq}`,
  ).toEqual(standings.slice(0, 6).map(({ member, score }) => ({ member, score })));
  expect([members, points]).toEqual([standings.length, standings.reduce((sum, { score }) => sum + score, 0)]);
  return applied?.seq ?? 0;
}

test.each([1, 2, 3])(
  "[LB11] at any moment, a board equals the reference of exactly the edits that it reports as counted (seed %i)",
  async (seed) => {
    const environment = `lb11-${seed}`;
    const [log, clock, prng] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE), new Prng(seed)];
    // Late windows are not archived in this test, so only Redis is read.
    const flags = { boardArchiveGraceMs: String(24 * 60 * MINUTE_MS) };
    let started = await rig.start(environment, log, clock, flags, harassed(prng));
    let [isOver, reads] = [false, 0];
    const moments = new Set<number>();
    const reader = async (own: Prng): Promise<void> => {
      for (; !isOver; reads++) moments.add(await expectPrefix(log, started, own));
    };
    const reading = Promise.all([reader(new Prng(seed + 100)), reader(new Prng(seed + 200))]);
    const isSeenEnough = () => reads > 100 && moments.size > 10;
    for (let round = 0; round < 30 || (round < ROUNDS_MAX && !isSeenEnough()); round++) {
      for (let left = 8; left > 0; left--) {
        const edits = Array.from({ length: 1 + prng.below(3) }, () => ({
          user: USERS[prng.below(USERS.length)]!,
          bytes: [10, 200, 5_000][prng.below(3)]!,
          time: clock.wallNow(),
        }));
        log.append(ROOMS[prng.below(ROOMS.length)]!, edits);
      }
      clock.advance(MINUTE_MS);
      if (round % 10 === 9) {
        const next = await rig.start(environment, log, clock, flags, harassed(prng));
        await started.host.stop();
        started = next;
      }
      await eventually("some of it is counted", async () => (await started.ports.boards.load(ROOMS[round % ROOMS.length]!)) !== undefined);
    }
    await eventually("all is counted", () => counted(log, started));
    isOver = true;
    await reading;
    expect(isSeenEnough(), `${reads} reads saw ${moments.size} boards on the way`).toBe(true);
    await expectReference(log, started);
  },
);
