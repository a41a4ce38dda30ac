import { expect, test } from "vitest";
import * as Y from "yjs";

import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { conflictBomb } from "../../shared/testing/yjs-bombs.ts";
import type { OpenedContent } from "../yjs-work.ts";
import { yjsThreads } from "./yjs-threads.ts";

const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

test("[YTH1] long updates are checked and merged in worker threads, short ones on the calling thread, with the same results", async () => {
  const threads = yjsThreads(SILENT_LOG);
  const kinds: string[] = [];
  threads.check(updateOf("short"), (facts) => void kinds.push(facts!.kind));
  expect(kinds).toEqual(["fit"]);
  const long = updateOf("long ".repeat(10_000));
  const checked = new Promise<string>((resolve) => threads.check(long, (facts) => resolve(facts!.kind)));
  const refused = new Promise<string>((resolve) => threads.check(conflictBomb(1_500), (facts) => resolve(facts!.kind)));
  const merged = new Promise<Uint8Array>((resolve) =>
    threads.merge({ parts: [long, updateOf("more")], stateVector: Uint8Array.of(0), condense: true }, (answer) => resolve(answer!.answer)),
  );
  const opened = new Promise<OpenedContent>((resolve) => threads.open(long, (content) => resolve(content!)));
  const unreadable = new Promise<unknown>((resolve) => threads.open(new Uint8Array(20_000).fill(9), resolve));
  expect(kinds, "nothing long is done at once").toEqual(["fit"]);
  const doc = new Y.Doc();
  Y.applyUpdate(doc, await merged);
  expect([await checked, await refused, doc.getText("t").length]).toEqual(["fit", "unfit", 50_004]);
  expect([Y.decodeSnapshot((await opened).snapshot).sv.size, await unreadable]).toEqual([1, undefined]);
  await threads.stop();
});

test("[YTH4] a short document with a long state vector is merged in a thread", async () => {
  const threads = yjsThreads(SILENT_LOG);
  let answer: unknown = "none yet";
  const stateVector = new Uint8Array(16_385); // Of no client: the rest is not read.
  const merged = new Promise<void>((resolve) =>
    threads.merge({ parts: [updateOf("short")], stateVector, condense: false }, (merge) => resolve(void (answer = merge?.answer))),
  );
  expect(answer).toBe("none yet");
  await merged;
  expect(answer).toBeInstanceOf(Uint8Array);
  await threads.stop();
});

test("[YTH3] a check that does not end gives no verdict on the update", async () => {
  const threads = yjsThreads(SILENT_LOG);
  const checked = new Promise((resolve) => threads.check(updateOf("long ".repeat(10_000)), resolve));
  await threads.stop();
  expect(await checked).toBe(undefined);
});

/** Text of a user whose type does not exist. */
function waitingUpdate(): Uint8Array {
  const doc = new Y.Doc();
  const nested = doc.getMap("m").set("k", new Y.Text());
  const before = Y.encodeStateVector(doc);
  doc.clientID += 1;
  nested.insert(0, "waits");
  return Y.encodeStateAsUpdate(doc, before);
}

test("[YTH2] edits that have to be integrated are merged in a thread, however short they are", async () => {
  const threads = yjsThreads(SILENT_LOG);
  const parts = [Y.encodeStateAsUpdate(new Y.Doc()), updateOf("text")];
  const waiting = waitingUpdate();
  const lengths: (number | undefined)[] = [];
  const merged = (all: Uint8Array[], condense: boolean): Promise<void> =>
    new Promise((resolve) =>
      threads.merge({ parts: all, stateVector: Uint8Array.of(0), condense }, (answer) => {
        const doc = new Y.Doc();
        Y.applyUpdate(doc, answer!.answer);
        lengths.push(doc.getText("t").length);
        resolve();
      }),
    );
  const linear = merged(parts, false);
  expect(lengths, "merged at once").toEqual([4]);
  const others = [merged([...parts, waiting, waiting], false), merged(parts, true)];
  expect(lengths, "merged later").toEqual([4]);
  await Promise.all([linear, ...others]);
  expect(lengths).toEqual([4, 4, 4]);
  await threads.stop();
});
