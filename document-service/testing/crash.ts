/** Runs a service that dies before or after any step of a save or trim, and reports the state that the next one finds. */

import * as Y from "yjs";

import type { Millis, Seq } from "../../shared/ids.ts";
import { recordsOf, RoomRun, type Stores } from "./one-room.ts";

type Crash = { readonly step: string; readonly when: "before" | "after" };
/** `textBySeq`: the text at each seq from 0. `isTrimmedTooFar`: beyond the checkpoint. */
type AfterCrash = { readonly served: string; readonly textBySeq: readonly string[]; readonly isTrimmedTooFar: boolean };

const LETTERS = "abcd";

export const CRASHES: readonly Crash[] = [
  "write",
  "read back",
  "checkpoint",
  "remove",
  "archive",
  "read archive back",
  "history",
  "trim",
].flatMap(
  (step) =>
    [
      { step, when: "before" },
      { step, when: "after" },
    ] satisfies Crash[],
);
export const NOTHING_LOST: AfterCrash = { served: `4 ${LETTERS}`, textBySeq: ["", "a", "ab", "abc", LETTERS], isTrimmedTooFar: false };

export async function afterCrash(stores: Stores, crash: Crash): Promise<AfterCrash> {
  const records = recordsOf(LETTERS);
  const first = new RoomRun(stores);
  await first.take(...records.slice(0, 2));
  await first.save();
  await first.take(...records.slice(2));
  first.now = 5_000 as Millis;
  stores.failing = crash;
  await first.save();
  first.now = 9_000 as Millis;
  await first.trim();
  stores.failing = undefined;

  const covered = stores.checkpoint?.streamSeq ?? 0;
  const isTrimmedTooFar = stores.trimmedBefore > covered;
  const next = new RoomRun(stores);
  await next.take(...records.filter(({ streamSeq }) => streamSeq >= stores.trimmedBefore && streamSeq > covered));
  const served = await next.served();
  const textBySeq: string[] = [];
  for (let seq = 0; seq <= LETTERS.length; seq++) textBySeq.push(await textAt(next, seq as Seq));
  return { served, textBySeq, isTrimmedTooFar };
}

async function textAt(run: RoomRun, seq: Seq): Promise<string> {
  const earlier = await run.room.historyReads.readAt({ seq });
  if (earlier.kind !== "state") return earlier.kind;
  const doc = new Y.Doc();
  Y.applyUpdate(doc, earlier.state);
  return doc.getText("text").toString();
}
