import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { eventually } from "../../test/system/eventually.ts";
import { documentThreads } from "./document-threads.ts";
import { pack, unpack } from "./packed-edits.ts";

/** Answers with the state it is given; an edit that begins with 255 keeps it busy for ever and says so in the state, one with 254 kills its thread, one with 253 makes the task throw, one with 251 says in the state that it was merged, one with 252 is refused as often as its thread has a number. Without edits the state is taken for one. */
const WORKER = `
  import { threadId } from "node:worker_threads";
  export function run({ question: { state, edits = { bytes: state } } }) {
    if (edits.bytes[0] === 255) for (Atomics.store(state, 0, 1); ; );
    if (edits.bytes[0] === 251) Atomics.store(state, 0, 1);
    if (edits.bytes[0] === 253) return { threw: new RangeError("no such length") };
    if (edits.bytes[0] === 252) return { state: state.slice(0, 1), refused: threadId };
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

const MERGE_MS_MAX = 1_500;
/** One timer for each question that a thread has. */
const clock = new FakeClock();
const started: ReturnType<typeof documentThreads>[] = [];
const logged: string[] = [];
const note = (level: string) => () => void logged.push(level);
const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
function start(options: { mergeThreads?: number; readsWaitingMax?: number; worker?: URL } = {}): ReturnType<typeof documentThreads> {
  const threads = documentThreads(
    { mergeMsMax: MERGE_MS_MAX, mergeThreads: 1, readsWaitingMax: 10, worker: pathToFileURL(join(folder, "worker.mjs")), ...options },
    { clock, log },
  );
  started.push(threads);
  return threads;
}
afterEach(() => Promise.all(started.splice(0).map((threads) => threads.stop())));

const state = (of: number) => Uint8Array.of(of);
const merged = (of: number) => ({ state: state(of), refused: 0 });

/** A merge that does not end; `giveUp`: once its thread is at it, and nothing else is under way, its time is over. */
function stick(threads: ReturnType<typeof documentThreads>): { answer: ReturnType<typeof threads.merge>; giveUp: () => Promise<void> } {
  const shared = new Uint8Array(new SharedArrayBuffer(1));
  const answer = threads.merge(shared, [Uint8Array.of(255)]);
  const giveUp = async (): Promise<void> => {
    await eventually("its thread is busy", () => Atomics.load(shared, 0) === 1);
    expect(clock.pending).toBe(1);
    clock.turn(MERGE_MS_MAX);
  };
  return { answer, giveUp };
}

test("[MTH1] edits come out as they went in", () => {
  const edits = [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4)];
  expect(unpack(pack(edits))).toEqual(edits);
});

test("[MTH2] a merge that does not end in time is given up with its thread, and those behind it are merged all the same", async () => {
  const threads = start();
  const merge = (byte: number) => threads.merge(state(byte), [Uint8Array.of(byte)]);
  const [first, stuck, second, stuckToo, third] = [merge(1), stick(threads), merge(2), stick(threads), merge(3)] as const;
  await stuck.giveUp();
  await stuckToo.giveUp();
  expect(await Promise.all([first, stuck.answer, second, stuckToo.answer, third])).toEqual([
    merged(1),
    "overran",
    merged(2),
    "overran",
    merged(3),
  ]);
});

test.each([
  [254, "busy"],
  [253, "unreadable"],
])("[MTH3] a thread that dies, or a state that it cannot read, takes only the merge that it was at: %i", async (bad, why) => {
  const threads = start();
  expect(await Promise.all([1, bad, 2].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)])))).toEqual([
    merged(1),
    why,
    merged(2),
  ]);
});

test("[MTH4] one thread that is kept busy does not keep the other from merging", async () => {
  const threads = start({ mergeThreads: 2 });
  const stuck = stick(threads);
  expect(await threads.merge(state(2), [Uint8Array.of(2)])).toEqual(merged(2));
  await stuck.giveUp();
  expect(await stuck.answer).toBe("overran");
});

test("[MTH5] past the limit readers are told that it is busy; merges wait all the same", async () => {
  const threads = start({ readsWaitingMax: 2 });
  const stuck = stick(threads);
  const waiting = [2, 3].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)]));
  expect(threads.waiting).toBe(2);
  expect(await threads.text(state(4), undefined)).toBe("busy");
  waiting.push(threads.merge(state(5), [Uint8Array.of(5)]));
  await stuck.giveUp();
  expect(await Promise.all([stuck.answer, ...waiting])).toEqual(["overran", merged(2), merged(3), merged(5)]);
});

test("[MTH8] who looks at the past is told that it is busy too, and once nobody waits for it nothing of it is merged", async () => {
  const threads = start({ readsWaitingMax: 1 });
  const stuck = stick(threads);
  const asker = new AbortController();
  const past = (seen: Uint8Array, signal: AbortSignal) => threads.mergePast(seen, [Uint8Array.of(251)], signal);
  const seen = new Uint8Array(new SharedArrayBuffer(1));
  const waiting = past(seen, asker.signal);
  expect(await past(state(1), new AbortController().signal)).toBe("busy");
  asker.abort();
  await stuck.giveUp();
  await Promise.all([stuck.answer, waiting]);
  expect([await threads.merge(state(2), [Uint8Array.of(2)]), seen[0]]).toEqual([merged(2), 0]);
});

test("[MTH7] a reader of what cannot be read is told so, one whose thread dies to ask again; the log has both, and the next is answered", async () => {
  const threads = start();
  logged.length = 0;
  expect(await threads.json(state(253), [])).toBe("unreadable");
  expect(await threads.json(state(254), [])).toBe("busy");
  expect(logged).toEqual(["info", "warn"]);
  expect(await threads.merge(state(1), [Uint8Array.of(1)])).toEqual(merged(1));
});

test("[MTH10] a question about a state that ends its thread each time is answered for good after a few, and no other question", async () => {
  const threads = start();
  const deadly = state(254);
  const answers = [];
  for (let asked = 0; asked < 5; asked++) answers.push(await threads.json(deadly, []));
  expect(answers).toEqual(["busy", "busy", "busy", "unreadable", "unreadable"]);
  expect([await threads.text(deadly, undefined), await threads.json(state(254), [])]).toEqual(["busy", "busy"]);
});

test("[MTH11] nor can one that ends its threads whatever is asked of it be asked without end, each time for another type", async () => {
  const threads = start();
  const deadly = state(254);
  const answers = [];
  for (let asked = 0; asked < 14; asked++) answers.push(await threads.json(deadly, [{ name: `t${asked}`, kind: "map" }]));
  expect(answers).toEqual([...Array.from({ length: 12 }, () => "busy"), "unreadable", "unreadable"]);
});

test("[MTH9] threads that do not begin are in the log, and nobody is told that a document cannot be read", async () => {
  const threads = start({ worker: pathToFileURL(join(folder, "missing.mjs")) });
  logged.length = 0;
  const asked = threads.json(state(1), []);
  await eventually("the log has it", () => logged.includes("warn"));
  clock.turn(MERGE_MS_MAX);
  expect(await asked).toBe("overran");
});

test("[MTH6] the thread of a long document ends with its answer, and any other's is there for the next", async () => {
  const threads = start();
  const threadOf = async (document: Uint8Array) => ((await threads.merge(document, [Uint8Array.of(252)])) as { refused: number }).refused;
  const [short, long] = [state(1), new Uint8Array(4 * 1024 ** 2)];
  expect(await threadOf(short)).toBe(await threadOf(short));
  const first = await threadOf(long);
  await eventually("the next has another thread", async () => (await threadOf(long)) !== first);
});
