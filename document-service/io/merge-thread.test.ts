import { afterEach, expect, test } from "vitest";

import { systemClock } from "../../shared/io/system-clock.ts";
import { mergeThread, pack, unpack } from "./merge-thread.ts";

/** Answers with the state it is given; an edit that begins with 255 keeps it busy for ever, one with 254 kills it. */
const WORKER = new URL(`data:text/javascript,${encodeURIComponent(`
  import { parentPort } from "node:worker_threads";
  parentPort.on("message", ({ id, state, edits }) => {
    while (edits.bytes[0] === 255);
    if (edits.bytes[0] === 254) throw new Error("out of memory");
    parentPort.postMessage({ id, merged: { state, refused: 0 } });
  });
`)}`);

const threads: ReturnType<typeof mergeThread>[] = [];
function start(): ReturnType<typeof mergeThread> {
  const thread = mergeThread({ mergeMsMax: 300, worker: WORKER }, systemClock);
  threads.push(thread);
  return thread;
}
afterEach(() => Promise.all(threads.splice(0).map((thread) => thread.stop())));

const state = (of: number) => Uint8Array.of(of);
const merged = (of: number) => ({ state: state(of), refused: 0 });

test("[MTH1] edits come out as they went in", () => {
  const edits = [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4)];
  expect(unpack(pack(edits))).toEqual(edits);
});

test("[MTH2] a merge that does not end in time is given up with its thread, and those behind it are merged all the same", async () => {
  const thread = start();
  const all = [1, 255, 2, 255, 3].map((byte) => thread.merge(state(byte), [Uint8Array.of(byte)]));
  expect(await Promise.all(all)).toEqual([merged(1), "overran", merged(2), "overran", merged(3)]);
});

test("[MTH3] a thread that dies takes only the merge that it was at", async () => {
  const thread = start();
  const all = await Promise.allSettled([1, 254, 2].map((byte) => thread.merge(state(byte), [Uint8Array.of(byte)])));
  expect(all).toMatchObject([{ value: merged(1) }, { reason: { message: "the merging thread died" } }, { value: merged(2) }]);
});
