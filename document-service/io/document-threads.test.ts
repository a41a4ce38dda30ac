import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { eventually } from "../../test/system/eventually.ts";
import { documentThreads } from "./document-threads.ts";
import { pack, unpack } from "./packed-edits.ts";

/**
 * Answers with the given state. The first byte of an edit selects the behaviour: 255 runs endlessly and counts that in
 * the state, 254 kills the thread, 253 makes the task throw, 251 notes the merge in the state, and 252 is refused as
 * often as the thread's number. Without edits the state is treated as an edit.
 */
const WORKER = `
  import { threadId } from "node:worker_threads";
  export function run({ question: { edit, state = edit, edits = { bytes: state } }, begun }) {
    Atomics.store(begun, 0, 1);
    if (edits.bytes[0] === 255) for (Atomics.add(state, 0, 1); ; );
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
const QUICK_MS = 1_000;
const ROOM = "demo.room" as RoomKey;
/** The clock has one timer for each task in a thread. */
const clock = new FakeClock();
const started: ReturnType<typeof documentThreads>[] = [];
const logged: string[] = [];
const note = (level: string) => () => void logged.push(level);
const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
function start(
  options: { mergeMsMax?: number; mergeThreads?: number; readsWaitingMax?: number; worker?: URL } = {},
  receiveWait: (wait: string) => void = () => {},
): ReturnType<typeof documentThreads> {
  const threads = documentThreads(
    { mergeMsMax: MERGE_MS_MAX, mergeThreads: 1, readsWaitingMax: 10, worker: pathToFileURL(join(folder, "worker.mjs")), ...options },
    { clock, log, waits: { observe: ({ lane, kind }, seconds) => receiveWait(`${lane} ${kind} ${seconds}`) } },
  );
  started.push(threads);
  return threads;
}
afterEach(() => Promise.all(started.splice(0).map((threads) => threads.stop())));

const state = (of: number) => Uint8Array.of(of);
const merged = (of: number) => ({ state: state(of), refused: 0 });

/** A merge that does not end. `untilStarted`: until it runs for the given number of times. */
function stick(threads: ReturnType<typeof documentThreads>, room: RoomKey = ROOM) {
  const starts = new Uint8Array(new SharedArrayBuffer(1));
  const answer = threads.merge(starts, [Uint8Array.of(255)], room, "background");
  const untilStarted = (count: number) => eventually("its thread is busy", () => Atomics.load(starts, 0) === count);
  const giveUp = async (): Promise<void> => {
    await untilStarted(1);
    clock.turn(QUICK_MS);
    await untilStarted(2);
    clock.turn(MERGE_MS_MAX);
  };
  return { answer, untilStarted, giveUp };
}

test("[MTH1] edits reach the thread and return unchanged", () => {
  const edits = [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4)];
  expect(unpack(pack(edits))).toEqual(edits);
});

test("[MTH2] a merge that exceeds its time ends with its thread, and the waiting merges still run", async () => {
  const threads = start();
  const merge = (byte: number) => threads.merge(state(byte), [Uint8Array.of(byte)], ROOM, "background");
  const [first, stuck, second] = [merge(1), stick(threads), merge(2)] as const;
  await stuck.giveUp();
  expect(await Promise.all([first, stuck.answer, second])).toEqual([merged(1), "overran", merged(2)]);
});

test("[MTH12] rooms that cannot be merged delay others by one quick try, and never again", async () => {
  const mergeMsMax = 10_000;
  const threads = start({ mergeMsMax });
  const bombed = ["demo.a", "demo.b", "demo.c"].map((room) => stick(threads, room as RoomKey));
  const beside = threads.merge(state(1), [Uint8Array.of(1)], ROOM, "background");
  for (const { untilStarted } of bombed) {
    await untilStarted(1);
    clock.turn(QUICK_MS);
  }
  expect(await beside).toEqual(merged(1));
  const again = stick(threads, "demo.a" as RoomKey); // Waits in quarantine.
  expect(await threads.merge(state(2), [Uint8Array.of(2)], ROOM, "background")).toEqual(merged(2));
  for (const { answer, untilStarted } of bombed) {
    await untilStarted(2);
    clock.turn(mergeMsMax);
    expect(await answer).toBe("overran");
  }
  await again.untilStarted(1);
  clock.turn(mergeMsMax);
  expect(await again.answer).toBe("overran");
});

test("[MTH13] the content of an HTTP write never waits for a merge", async () => {
  const mergeMsMax = 10_000;
  const threads = start({ mergeMsMax });
  const bombed = ["demo.a", "demo.b"].map((room) => stick(threads, room as RoomKey));
  await bombed[0]!.untilStarted(1);
  expect(await threads.check(state(7), ROOM)).toEqual(merged(7));
  for (const { untilStarted } of bombed) {
    await untilStarted(1);
    clock.turn(QUICK_MS);
  }
  for (const { answer, untilStarted } of bombed) {
    await untilStarted(2);
    clock.turn(mergeMsMax);
    expect(await answer).toBe("overran");
  }
});

test("[MTH18] while writes of one room fill the queue, one of another room is checked, and the room's own last one is refused", async () => {
  const threads = start({ readsWaitingMax: 2 });
  const endless = new Uint8Array(new SharedArrayBuffer(1)).fill(255);
  const crowded = [endless, state(1), state(2)].map((edit) => threads.check(edit, "demo.a" as RoomKey));
  const other = threads.check(state(3), ROOM);
  expect(await crowded[2]).toBe("busy");
  await eventually("the first one runs", () => Atomics.load(endless, 0) === 0);
  clock.turn(MERGE_MS_MAX);
  expect(await Promise.all([crowded[0], other, crowded[1]])).toEqual(["overran", merged(3), merged(1)]);
});

test("[MTH19] HTTP writes keep their thread, because it never runs a merge that may end it", async () => {
  const threads = start();
  const threadOfWrites = async () => ((await threads.check(state(252), ROOM)) as unknown as { refused: number }).refused;
  const thread = await threadOfWrites();
  const stuck = stick(threads);
  await stuck.giveUp();
  expect(await stuck.answer).toBe("overran");
  expect(await threadOfWrites()).toBe(thread);
});

test.each(["merge", "read"] as const)("[MTH20] a %s waits for no merge of another tenant but the running one", async (kind) => {
  const waits: string[] = [];
  const threads = start({ mergeMsMax: 10_000 }, (wait) => waits.push(wait));
  const bombed = ["demo.a", "demo.b", "demo.c"].map((room) => stick(threads, room as RoomKey));
  await bombed[0]!.untilStarted(1);
  const other = "other.room" as RoomKey;
  const answer = kind === "read" ? threads.text(state(1), other, undefined) : threads.merge(state(1), [Uint8Array.of(1)], other, "awaited");
  clock.turn(QUICK_MS);
  expect(await answer).toEqual(merged(1));
  expect(waits).toContain(`quick ${kind === "read" ? "read" : "awaited"} 1`);
  for (const { untilStarted } of bombed.slice(1)) {
    await untilStarted(1);
    clock.turn(QUICK_MS);
  }
  for (const { answer: abandoned, untilStarted } of bombed) {
    await untilStarted(2);
    clock.turn(10_000);
    expect(await abandoned).toBe("overran");
  }
});

test.each([
  [254, "busy"],
  [253, "unreadable"],
])("[MTH3] a dead thread, or a state that it cannot read, fails only its own merge: %i", async (bad, why) => {
  const threads = start();
  expect(await Promise.all([1, bad, 2].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)], ROOM, "background")))).toEqual([
    merged(1),
    why,
    merged(2),
  ]);
});

test("[MTH4] one busy thread does not stop another from merging", async () => {
  const threads = start({ mergeThreads: 2 });
  const stuck = stick(threads, "demo.stuck" as RoomKey);
  expect(await threads.merge(state(2), [Uint8Array.of(2)], ROOM, "background")).toEqual(merged(2));
  await stuck.giveUp();
  expect(await stuck.answer).toBe("overran");
});

test('[MTH5] past the limit reads are answered "busy", while merges wait and do not count', async () => {
  const threads = start({ readsWaitingMax: 2 });
  const stuck = stick(threads, "demo.stuck" as RoomKey);
  const merges = [2, 3, 4].map((byte) => threads.merge(state(byte), [Uint8Array.of(byte)], ROOM, "background"));
  const reads = [5, 6, 7].map((byte) => threads.text(state(byte), ROOM, undefined));
  expect([await reads[2], threads.waiting]).toEqual(["busy", 5]);
  await stuck.giveUp();
  expect(await Promise.all([stuck.answer, ...merges, ...reads])).toEqual(["overran", ...[2, 3, 4, 5, 6].map(merged), "busy"]);
});

test('[MTH8] a read of history is answered "busy" past the limit too, and is not started once its caller has left', async () => {
  const threads = start({ readsWaitingMax: 1 });
  const stuck = stick(threads, "demo.stuck" as RoomKey);
  const asker = new AbortController();
  const past = (seen: Uint8Array, signal: AbortSignal) => threads.mergeHistory(seen, [Uint8Array.of(251)], ROOM, signal);
  const seen = new Uint8Array(new SharedArrayBuffer(1));
  const waiting = past(seen, asker.signal);
  expect(await past(state(1), new AbortController().signal)).toBe("busy");
  asker.abort();
  await stuck.giveUp();
  await Promise.all([stuck.answer, waiting]);
  expect([await threads.merge(state(2), [Uint8Array.of(2)], ROOM, "background"), seen[0]]).toEqual([merged(2), 0]);
});

test("[MTH15] a history that cannot be read quickly occupies a quick thread once, and its readers never wait for each other", async () => {
  const mergeMsMax = 10_000;
  const threads = start({ mergeMsMax });
  const past = (byte: number) => {
    const starts = new Uint8Array(new SharedArrayBuffer(1));
    const untilStarted = (count: number) => eventually("its thread is busy", () => Atomics.load(starts, 0) === count);
    return { answer: threads.mergeHistory(starts, [Uint8Array.of(byte)], ROOM), untilStarted };
  };
  const first = past(255);
  await first.untilStarted(1);
  clock.turn(QUICK_MS);
  await first.untilStarted(2);
  expect(await past(255).answer).toBe("busy");
  expect(await threads.merge(state(1), [Uint8Array.of(1)], ROOM, "background"), "the room itself is not quarantined").toEqual(merged(1));
  clock.turn(mergeMsMax);
  expect(await first.answer).toBe("overran");

  const second = past(255); // Goes to the quarantine at once.
  await second.untilStarted(1);
  expect(await threads.revert(state(1), state(2), ROOM)).toBe("busy");
  expect(await threads.merge(state(2), [Uint8Array.of(2)], ROOM, "background")).toEqual(merged(2));
  clock.turn(mergeMsMax);
  expect(await second.answer).toBe("overran");
  expect(await past(7).answer).toMatchObject({ refused: 0 });
});

test('[MTH7] unreadable content is reported as such, a dead thread as "ask again"; both are logged, and the next read is answered', async () => {
  const threads = start();
  logged.length = 0;
  expect(await threads.json(state(253), ROOM, [])).toBe("unreadable");
  expect(await threads.json(state(254), ROOM, [])).toBe("busy");
  expect(logged).toEqual(["info", "warn"]);
  expect(await threads.merge(state(1), [Uint8Array.of(1)], ROOM, "background")).toEqual(merged(1));
});

test("[MTH10] a read that ends its thread each time is refused permanently after a few tries, and other reads are not", async () => {
  const threads = start();
  const deadly = state(254);
  const answers = [];
  for (let asked = 0; asked < 5; asked++) answers.push(await threads.json(deadly, ROOM, []));
  expect(answers).toEqual(["busy", "busy", "busy", "unreadable", "unreadable"]);
  expect([await threads.text(deadly, ROOM, undefined), await threads.json(state(254), ROOM, [])]).toEqual(["busy", "busy"]);
});

test("[MTH11] a state that ends its thread at every read is refused after a total of tries, for any requested type", async () => {
  const threads = start();
  const deadly = state(254);
  const answers = [];
  for (let asked = 0; asked < 14; asked++) answers.push(await threads.json(deadly, ROOM, [{ name: `t${asked}`, kind: "map" }]));
  expect(answers).toEqual([...Array.from({ length: 12 }, () => "busy"), "unreadable", "unreadable"]);
});

test("[MTH16] a read that exceeds its time at each try is answered at once after a few tries, until the document changes", async () => {
  const threads = start();
  const endless = state(255);
  for (let asked = 0; asked < 3; asked++) {
    const answer = threads.json(endless, ROOM, []);
    for (const _ of ["quick", "quarantine"]) {
      await eventually("the try is timed", () => clock.pending === 1);
      clock.turn(MERGE_MS_MAX);
    }
    expect(await answer).toBe("overran");
  }
  expect([await threads.json(endless, ROOM, []), clock.pending]).toEqual(["overran", 0]);
  expect(await threads.json(state(7), ROOM, [])).toEqual(merged(7));
});

test("[MTH17] a read that finds the quarantine full is not counted as one that ended its threads", async () => {
  const threads = start({ readsWaitingMax: 1, mergeMsMax: 10_000 });
  const endlessRead = (bytes = new Uint8Array(new SharedArrayBuffer(1))) => {
    bytes.fill(255);
    const answer = threads.json(bytes, ROOM, []);
    return { answer, untilRuns: () => eventually("it runs", () => Atomics.load(bytes, 0) === 0) };
  };
  const running = stick(threads, "demo.a" as RoomKey);
  await running.untilStarted(1);
  clock.turn(QUICK_MS);
  await running.untilStarted(2);
  const waiting = endlessRead();
  await waiting.untilRuns();
  clock.turn(QUICK_MS);
  const endless = new Uint8Array(new SharedArrayBuffer(1));
  for (let asked = 0; asked < 4; asked++) {
    const read = endlessRead(endless);
    await read.untilRuns();
    clock.turn(QUICK_MS);
    expect(await read.answer).toBe("busy");
  }
  clock.turn(10_000);
  expect(await running.answer).toBe("overran");
  await eventually("the first read is tried again", () => clock.pending === 1);
  clock.turn(10_000);
  expect(await waiting.answer).toBe("overran");
});

test("[MTH9] threads that fail to start are logged, and no document is reported as unreadable", async () => {
  const threads = start({ worker: pathToFileURL(join(folder, "missing.mjs")) });
  logged.length = 0;
  const asked = threads.json(state(1), ROOM, []);
  await eventually("the log has it", () => logged.includes("warn"));
  clock.turn(QUICK_MS);
  expect(clock.pending, "a thread that starts late is waited for").toBe(1);
  clock.turn(MERGE_MS_MAX - QUICK_MS);
  await eventually("it is tried in quarantine", () => clock.pending === 1);
  clock.turn(MERGE_MS_MAX);
  expect(await asked).toBe("overran");
});

test("[MTH14] a task whose thread starts late has a whole second from its beginning, and its room is not quarantined", async () => {
  const threads = start({ mergeMsMax: 10_000 });
  const stuck = stick(threads);
  clock.turn(2 * QUICK_MS); // The thread has not started yet.
  await stuck.untilStarted(1);
  clock.turn(QUICK_MS - 1);
  expect(clock.pending, "it still runs").toBe(1);
  clock.turn(1 + QUICK_MS / 4);
  await stuck.untilStarted(2);
  clock.turn(10_000);
  expect(await stuck.answer).toBe("overran");
});

test("[MTH6] the thread of a long document ends with its answer, and other threads are reused", async () => {
  const threads = start();
  const threadOf = async (document: Uint8Array) =>
    ((await threads.merge(document, [Uint8Array.of(252)], ROOM, "background")) as { refused: number }).refused;
  const [short, long] = [state(1), new Uint8Array(4 * 1024 ** 2)];
  expect(await threadOf(short)).toBe(await threadOf(short));
  const first = await threadOf(long);
  await eventually("the next has another thread", async () => (await threadOf(long)) !== first);
});
