import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { systemClock } from "../../shared/io/system-clock.ts";
import { documentThreads } from "./document-threads.ts";
import { pack, unpack } from "./packed-edits.ts";

/** Answers with the state it is given; an edit that begins with 255 keeps it busy for ever, one with 254 kills its thread, one with 253 is its failure. */
const WORKER = `
  export function run({ question: { state, edits } }) {
    while (edits.bytes[0] === 255);
    if (edits.bytes[0] === 253) throw new RangeError("no such length");
    if (edits.bytes[0] !== 254) return { state, refused: 0 };
    setImmediate(() => { throw new Error("out of memory"); });
    return new Promise(() => {});
  }
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-threads-"));
  writeFileSync(join(folder, "worker.mjs"), WORKER);
});
afterAll(() => rmSync(folder, { recursive: true }));

const started: ReturnType<typeof documentThreads>[] = [];
function start(options: { mergeThreads?: number; mergeMsMax?: number; readsWaitingMax?: number } = {}): ReturnType<typeof documentThreads> {
  const threads = documentThreads({ mergeMsMax: 1_500, mergeThreads: 1, readsWaitingMax: 10, worker: pathToFileURL(join(folder, "worker.mjs")), ...options }, systemClock);
  started.push(threads);
  return threads;
}
afterEach(() => Promise.all(started.splice(0).map((threads) => threads.stop())));

const state = (of: number) => Uint8Array.of(of);
const merged = (of: number) => ({ state: state(of), refused: 0 });

test("[MTH1] edits come out as they went in", () => {
  const edits = [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4)];
  expect(unpack(pack(edits))).toEqual(edits);
});

test("[MTH2] a merge that does not end in time is given up with its thread, and those behind it are merged all the same", async () => {
  const threads = start();
  const all = [1, 255, 2, 255, 3].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)]));
  expect(await Promise.all(all)).toEqual([merged(1), "overran", merged(2), "overran", merged(3)]);
});

test.each([254, 253])("[MTH3] a thread that dies, or a state that it cannot read, takes only the merge that it was at: %i", async (bad) => {
  const threads = start();
  const all = await Promise.allSettled([1, bad, 2].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)])));
  expect(all).toMatchObject([{ value: merged(1) }, { reason: { message: "a thread died over a document, or could not read it" } }, { value: merged(2) }]);
});

test("[MTH4] one thread that is kept busy does not keep the other from merging", async () => {
  const threads = start({ mergeThreads: 2, mergeMsMax: 3_000 });
  const order: string[] = [];
  const stuck = threads.merge(state(1), [Uint8Array.of(255)]).then(() => order.push("stuck"));
  await threads.merge(state(2), [Uint8Array.of(2)]).then(() => order.push("merged"));
  await stuck;
  expect(order).toEqual(["merged", "stuck"]);
});

test("[MTH5] past the limit readers are told that it is busy; merges wait all the same", async () => {
  const threads = start({ readsWaitingMax: 2 });
  const stuck = threads.merge(state(1), [Uint8Array.of(255)]);
  const waiting = [2, 3].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)]));
  expect(threads.waiting).toBe(2);
  expect(await threads.text(state(4), undefined)).toBe("busy");
  waiting.push(threads.merge(state(5), [Uint8Array.of(5)]));
  expect(await Promise.all([stuck, ...waiting])).toEqual(["overran", merged(2), merged(3), merged(5)]);
});
