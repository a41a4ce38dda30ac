import { expect, test } from "vitest";

import type { Seq } from "../../shared/ids.ts";
import { nextDeletionStep, servedWithoutEdits } from "./log-end.ts";

const empty = { kind: "empty" } as const;
const at = (seq: number) => ({ kind: "at", seq: seq as Seq }) as const;
const deleted = { kind: "deleted", streamSeq: 9 } as const;

test("[LGE1] a room of which no edit was read is loading while its log has edits, and has no document otherwise", () => {
  expect([empty, at(0), at(1), deleted].map((end) => servedWithoutEdits(end).kind)).toEqual([
    "no-document",
    "no-document",
    "loading",
    "deleted",
  ]);
});

test("[LGE2] a room is deleted once, a room that never existed not at all, and a room whose log was lost by its checkpoint", () => {
  const steps = [
    nextDeletionStep({ isDeleted: false, isKnown: false }, empty),
    nextDeletionStep({ isDeleted: false, isKnown: true }, empty),
    nextDeletionStep({ isDeleted: false, isKnown: false }, at(0)),
    nextDeletionStep({ isDeleted: true, isKnown: false }, empty),
    nextDeletionStep({ isDeleted: false, isKnown: true }, deleted),
  ];
  expect(steps).toEqual([
    { kind: "no-room" },
    { kind: "append", streamSeq: undefined },
    { kind: "append", streamSeq: undefined },
    { kind: "deleted", streamSeq: undefined },
    { kind: "deleted", streamSeq: 9 },
  ]);
});
