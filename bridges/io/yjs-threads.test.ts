import { expect, test, vi } from "vitest";
import * as Y from "yjs";

import type { RoomKey } from "../../shared/ids.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { conflictBomb } from "../../shared/testing/yjs-bombs.ts";
import type { OpenedContent } from "../yjs-work.ts";
import { yjsThreads } from "./yjs-threads.ts";

const ROOM = "acme.room" as RoomKey;

/** The work of one room. */
function oneRoom() {
  const threads = yjsThreads(SILENT_LOG);
  return { ...threads.workOf(ROOM), stop: () => threads.stop() };
}

const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

test("[YTH1] long updates are checked and merged in worker threads, short ones on the calling thread, with the same results", async () => {
  const threads = oneRoom();
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
  const threads = oneRoom();
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
  const threads = oneRoom();
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
  const threads = oneRoom();
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

test("[YTH5] a task of a room waits for the running tasks only, however many of another room wait", async () => {
  const threads = yjsThreads(SILENT_LOG);
  const [slow, other] = [threads.workOf("evil.slow" as RoomKey), threads.workOf(ROOM)];
  const long = updateOf("long ".repeat(200_000));
  let openedCount = 0;
  const opened = Array.from({ length: 20 }, () => new Promise<void>((resolve) => slow.open(long, () => resolve(void (openedCount += 1)))));
  const openedBefore = await new Promise((resolve) => other.check(updateOf("text ".repeat(300)), () => resolve(openedCount)));
  expect(openedBefore, "two run, and one may start while the first answer arrives").toBeLessThanOrEqual(3);
  await Promise.all(opened);
  await threads.stop();
});

test("[YTH6] the time limit of a task begins with its start, so that no task fails because others are slow", async () => {
  const timeout = vi.spyOn(AbortSignal, "timeout");
  const threads = oneRoom();
  const update = updateOf("text ".repeat(300));
  const checked = Array.from({ length: 10 }, () => new Promise((resolve) => threads.check(update, resolve)));
  expect(timeout, "two threads").toHaveBeenCalledTimes(2);
  expect(await Promise.all(checked)).not.toContain(undefined);
  expect(timeout).toHaveBeenCalledTimes(10);
  timeout.mockRestore();
  await threads.stop();
});

test("[YTH7] content whose merge takes milliseconds is merged in a thread, because a client may request it thousands of times", async () => {
  const doc = new Y.Doc();
  const edits: Uint8Array[] = [];
  doc.on("update", (edit: Uint8Array) => edits.push(edit));
  for (let letter = 0; letter < 300; letter++) doc.getText("t").insert(0, "a"); // A struct each.
  for (const parts of [[Y.encodeStateAsUpdate(doc)], [updateOf(""), ...edits.slice(0, 20)]]) {
    const threads = oneRoom();
    let isMerged = false;
    const merged = new Promise<void>((resolve) =>
      threads.merge({ parts, stateVector: Y.encodeStateVector(doc), condense: false }, () => resolve(void (isMerged = true))),
    );
    expect(isMerged).toBe(false);
    await merged;
    await threads.stop();
  }
});
