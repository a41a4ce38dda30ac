import { expect, test } from "vitest";
import * as Y from "yjs";

import { encodeEditsRecord, encodeEpochRecord } from "../shared/bus/record.ts";
import type { StoredRecord } from "../shared/bus/stored-record.ts";
import type { ClientId, Epoch, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { readTrace, TRACE_TEXT } from "../test/system/traces.ts";
import type { Past } from "./past-host.ts";
import type { RoomOptions } from "./room-host.ts";
import { ann, recordsOf, ROOM, Run, Stores } from "./testing/one-room.ts";

const KEEP = { mergeEditsMax: 100_000, mergeBytesMax: 100_000_000, historyMsMax: 1_000_000_000, historyBytesMax: 100_000_000, historyReadBytesMax: 100_000_000, historyVersionEditsMax: 5_000 };

function textOf(past: Past, name = "text"): string {
  if (past.kind !== "state") return past.kind;
  const doc = new Y.Doc();
  Y.applyUpdate(doc, past.state);
  return doc.getText(name).toString();
}

test("[PST1] any seq of a recorded session, read back, is the text that the session had there", { timeout: 120_000 }, async () => {
  const { edits, endText } = readTrace("friendsforever");
  const [stores, reference] = [new Stores(), new Y.Doc()];
  const run = new Run(stores, { ...KEEP, historySegmentBytesMax: 150_000 });
  // A prime, so that what is looked at falls on every place in records, segments and versions; and both ends of each save.
  const everySeqs = Number(process.env["PAST_EVERY"] ?? 499);
  const texts = new Map<number, string>([[0, ""]]);
  let streamSeq = 1;
  await run.take({ room: ROOM, streamSeq, time: 0 as UnixMillis, bytes: encodeEpochRecord({ id: "owner", time: 0 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq }) });
  for (let first = 0, size = 1; first < edits.length; first += size, size = 1 + (first % 7)) {
    const group = edits.slice(first, first + size);
    for (const [index, { edit }] of group.entries()) {
      Y.applyUpdate(reference, edit);
      const seq = first + index + 1;
      if (seq % everySeqs === 0 || seq % 3_000 < 2 || seq === edits.length) texts.set(seq, reference.getText(TRACE_TEXT).toString());
    }
    const made = group.map(({ author, edit }, index) => ({ client: `author000000000${author}` as ClientId, counter: first + index + 1, parentSeq: first as Seq, payload: edit }));
    const users = new Map(made.map(({ client }) => [client, client as string as UserId]));
    const stored: StoredRecord = { room: ROOM, streamSeq: ++streamSeq, time: first as UnixMillis, bytes: encodeEditsRecord({ id: `r${first}`, time: first as UnixMillis, users, edits: { epoch: 1 as Epoch, firstSeq: (first + 1) as Seq, edits: made } }) };
    stores.log.push(stored);
    run.room.receiveRecord(stored);
    run.now = first as typeof run.now;
    if (first % 3_000 < size) await run.saveAndTrim(first);
  }
  await run.saveAndTrim(edits.length);
  expect([stores.history.versions.length, stores.history.segments.length, stores.trimmedBefore].every((count) => count > 3)).toBe(true);
  for (const [seq, text] of texts) expect(textOf(await run.room.past.readAt({ seq: seq as Seq }), TRACE_TEXT) === text, `the text at ${seq}`).toBe(true);
  expect(texts.get(edits.length)).toBe(endText);
});

/** A letter a second, saved and trimmed as they come. */
async function written(text: string, options: Partial<RoomOptions> = {}): Promise<{ stores: Stores; run: Run }> {
  const stores = new Stores();
  const run = new Run(stores, { ...KEEP, ...options });
  for (const [index, record] of recordsOf(text).entries()) {
    await run.saveAndTrim(index * 1_000);
    await run.take({ ...record, time: (index * 1_000) as UnixMillis });
  }
  return { stores, run };
}

test("[PST2] a time is the last seq that the log had then", async () => {
  const { stores, run } = await written("abcdefgh");
  expect(stores.history.segments.at(-1)?.lastSeq).toBeGreaterThan(2);
  const at = async (time: number) => textOf(await run.room.past.readAt({ time: time as UnixMillis }));
  expect([await at(-1), await at(0), await at(2_999), await at(3_000), await at(99_000)]).toEqual(["", "a", "abc", "abcd", "abcdefgh"]);
  expect(await run.room.past.readAt({ seq: 9 as Seq })).toEqual({ kind: "not-yet", head: 8 });
});

test("[PST3] who wrote when is told from segments and the log alike", async () => {
  const { run } = await written("abcdef");
  const told: unknown[] = [];
  for (let next = 1; next <= 6; ) {
    const { sessions, through } = await run.room.past.sessions(next as Seq);
    expect(sessions).toMatchObject([{ user: "ann", client: ann, firstSeq: next, lastSeq: through, edits: through - next + 1, firstTime: (next - 1) * 1_000, lastTime: (through - 1) * 1_000 }]);
    told.push(through);
    next = through + 1;
  }
  expect([told.length > 1, told.at(-1)]).toEqual([true, 6]);
  expect(await run.room.past.sessions(7 as Seq)).toEqual({ sessions: [], through: 6 });
});

test("[PST4] an old state comes back as an edit like any other, and what was done since is in the past as well", async () => {
  const { run } = await written("abcd");
  const reverted = await run.room.past.revert({ seq: 2 as Seq });
  expect(reverted.kind).toBe("edit");
  const payload = reverted.kind === "edit" ? reverted.edit : new Uint8Array();
  const edits = { epoch: 1 as Epoch, firstSeq: 5 as Seq, edits: [{ client: ann, counter: 5, parentSeq: 4 as Seq, payload }] };
  await run.take({ room: ROOM, streamSeq: 50, time: 5_000 as UnixMillis, bytes: encodeEditsRecord({ id: "revert", time: 5_000 as UnixMillis, users: new Map([[ann, "ann" as UserId]]), edits }) });
  expect([await run.served(), textOf(await run.room.past.readAt({ seq: 4 as Seq })), textOf(await run.room.past.readAt({ seq: 5 as Seq }))]).toEqual(["5 ab", "abcd", "ab"]);
  expect(await run.room.past.revert({ seq: 5 as Seq })).toEqual({ kind: "unchanged" });
});

test("[PST5] a version with a name stays when all around it has gone, until it is removed; there are only so many", async () => {
  const { stores, run } = await written("abc");
  const named = await run.room.past.name("before lunch");
  expect(named).toMatchObject({ kind: "named", version: { seq: 3, name: "before lunch" } });
  expect((await run.room.past.name("two")).kind).toBe("named");
  expect(await run.room.past.name("three")).toEqual({ kind: "too-many" });
  const later = new Run(stores, { ...KEEP, historyMsMax: 1_000 });
  for (const record of recordsOf("abcdef").slice(2)) await later.take({ ...record, time: 90_000 as UnixMillis });
  await later.saveAndTrim(100_000);
  await later.saveAndTrim(110_000);
  expect([textOf(await later.room.past.readAt({ seq: 1 as Seq })), textOf(await later.room.past.readAt({ seq: 3 as Seq }))]).toEqual(["not-kept", "abc"]);
  const id = named.kind === "named" ? named.version.id : "";
  expect([await later.room.past.removeVersion(id), await later.room.past.removeVersion(id)]).toEqual([true, false]);
  expect([...stores.objects.keys()].toSorted()).toEqual([...stores.history.versions, ...stores.history.segments].map(({ object }) => object).toSorted());
});

test("[PST6] where a version is lost or damaged the state is made another way; where a segment is, it is not made up", async () => {
  const { stores, run } = await written("abcdefgh", { historyVersionEditsMax: 2 });
  expect(stores.history.versions.length).toBeGreaterThan(1);
  for (const { object } of stores.history.versions) stores.objects.set(object, Uint8Array.of(1));
  expect(textOf(await run.room.past.readAt({ seq: 7 as Seq }))).toBe("abcdefg");
  stores.objects.delete(stores.history.segments[0]!.object);
  expect(textOf(await run.room.past.readAt({ seq: 7 as Seq }))).toBe("not-kept");
});
