import { expect, test } from "vitest";

import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { type BoardsDump, NO_USES, SCORE_MAX } from "./board.ts";
import { readBoards, writeBoards, type WrittenBoards } from "./checkpoint.ts";
import { ALL_TIME, parseWindow } from "./windows.ts";

const DUMP: BoardsDump = {
  applied: {
    epoch: 2 as Epoch,
    seq: 9 as Seq,
    streamSeq: 40,
    time: 1_800_000_000_000 as UnixMillis,
    missing: 1,
    instant: 80,
    activity: 6,
    activityInstant: 71,
  },
  uses: {
    ...NO_USES,
    edits: { period: 30_000_000, points: new Map([["ann", 3]] as [UserId, number][]) },
    present: { period: 7, points: new Map([["bob", 1]] as [UserId, number][]) },
  },
  names: new Map([["ann", "Ann"]]),
  boards: [
    {
      role: "everyone",
      window: ALL_TIME,
      standings: [
        { member: "__proto__", score: SCORE_MAX, reachedAt: 9 },
        { member: "ann", score: 3, reachedAt: 7 },
      ],
    },
    { role: "editors", window: parseWindow("2026-W53")!, standings: [{ member: "ann", score: 3, reachedAt: 7 }] },
  ],
};

test("[CKP1] a checkpoint reads back as the boards that were written, and holds each name once", () => {
  const written = writeBoards(DUMP);
  expect(written.members).toEqual(["__proto__", "ann"]);
  expect(readBoards(JSON.parse(JSON.stringify(written)))).toEqual(DUMP);
});

test.each<[string, (written: WrittenBoards) => unknown]>([
  ["nothing", () => undefined],
  ["a list", () => []],
  ["a window that is none", (written) => ({ ...written, boards: [{ role: "everyone", window: "2026-W54", standings: [] }] })],
  ["a role that is none", (written) => ({ ...written, boards: [{ role: "boss", window: "all", standings: [] }] })],
  ["a member that is not listed", (written) => ({ ...written, members: [] })],
  ["a score below nothing", (written) => ({ ...written, boards: [{ role: "everyone", window: "all", standings: [[0, -1, 1]] }] })],
  ["no mark of how far it counts", (written) => ({ ...written, applied: undefined })],
])("[CKP2] %s is no checkpoint", (_, damage) => {
  expect(readBoards(damage(writeBoards(DUMP)))).toBeUndefined();
});
