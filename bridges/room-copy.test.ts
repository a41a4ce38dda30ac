import { expect, test } from "vitest";
import * as Y from "yjs";

import type { ClientId, Epoch, Position, RoomKey, Seq } from "../shared/ids.ts";
import { nestingBomb } from "../shared/testing/yjs-bombs.ts";
import type { RoomEdit } from "../client/room/room-messages.ts";
import type { YjsWork } from "./ports.ts";
import { RoomCopy, SharedRooms } from "./room-copy.ts";
import { synchronousYjsWork } from "./testing/synchronous-yjs-work.ts";
import { factsOf } from "./update-facts.ts";
import { decodeYMessage } from "./y-websocket-protocol.ts";

/** The updates of one author who types these words. */
function typed(words: readonly string[]): Uint8Array[] {
  const doc = new Y.Doc();
  const updates: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => void updates.push(update));
  for (const word of words) doc.getText("t").insert(doc.getText("t").length, word);
  return updates;
}

function textOf(updates: readonly Uint8Array[]): string {
  const doc = new Y.Doc();
  for (const update of updates) Y.applyUpdate(doc, update);
  return doc.getText("t").toJSON();
}

const position = (seq: number): Position => ({ epoch: 1 as Epoch, seq: seq as Seq });
const editOf = (seq: number, payload: Uint8Array): RoomEdit => ({
  seq: seq as Seq,
  client: "ann" as ClientId,
  counter: seq,
  payload,
  own: false,
});

function rig(work: YjsWork = synchronousYjsWork, yRoomBytesMax = 1_000_000) {
  const leftOut: string[] = [];
  const copy = new RoomCopy({ yRoomBytesMax }, { work, reportLeftOut: (why) => void leftOut.push(why) });
  const received: Uint8Array[] = [];
  const lost: string[] = [];
  copy.enter({
    receiveUpdate: (message) => {
      const update = decodeYMessage(message);
      if (update?.kind === "update") received.push(update.update);
    },
    receiveRelayed: () => {},
    receiveLost: (why) => void lost.push(why),
  });
  const deliver = (seq: number, payload: Uint8Array): void => copy.receiveEdits([editOf(seq, payload)], position(seq));
  const answer = (stateVector: Uint8Array = Uint8Array.of(0)): Uint8Array => {
    let answered: Uint8Array | undefined;
    copy.answer(stateVector, (merged) => (answered = merged?.answer));
    return answered!;
  };
  return { copy, received, lost, leftOut, deliver, answer };
}

test("[YRC1] each edit is announced once, whichever connections of the room deliver it", () => {
  const { copy, received, deliver } = rig();
  const [a, b, c] = typed(["a", "b", "c"]);
  deliver(1, a!);
  copy.receiveEdits([editOf(1, a!), editOf(2, b!)], position(2));
  deliver(2, b!);
  deliver(3, c!);
  expect([received, textOf(received)]).toEqual([[a, b, c], "abc"]);
  expect(copy.since).toEqual({ position: position(3), last: { client: "ann", counter: 3 } });
});

test("[YRC11] a copy whose edit could not be checked is lost, and does not continue without the edit", () => {
  const { lost, leftOut, deliver } = rig({ ...synchronousYjsWork, check: (_, receive) => receive(undefined) });
  deliver(1, typed(["a"])[0]!);
  expect([lost.length, leftOut]).toEqual([1, []]);
});

test("[YRC12] edits are condensed while no client requests anything, so a room whose clients stay keeps few of them", () => {
  const partCounts: number[] = [];
  const merge: YjsWork["merge"] = (question, receive) => {
    partCounts.push(question.parts.length);
    synchronousYjsWork.merge(question, receive);
  };
  const { copy, deliver, answer } = rig({ ...synchronousYjsWork, merge });
  const doc = new Y.Doc();
  let seq = 0;
  doc.on("update", (update: Uint8Array) => deliver((seq += 1), update));
  for (let typed = 0; typed < 6_000; typed++) {
    doc.getText("t").insert(0, "a");
    doc.getText("t").delete(0, 1);
  }
  doc.getText("t").insert(0, "end");
  expect(copy.bytes).toBeLessThan(100_000);
  expect(textOf([answer()])).toBe("end");
  expect(partCounts.map((count) => count <= 10_001)).toEqual([true, true]);
});

test("[YRC14] edits are announced while others are condensed, and follow the condensed ones, also after a request or a snapshot", () => {
  const doc = new Y.Doc();
  const updates: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => void updates.push(update));
  for (let typed = 0; typed < 10_001; typed++) doc.getText("t").insert(typed, typed < 10_000 ? "a" : "b");
  const isComplete = (content: Uint8Array): boolean => textOf([content]) === `${"a".repeat(10_000)}b`;
  for (const meanwhile of ["nothing", "request", "snapshot"] as const) {
    const condensing: (() => void)[] = [];
    const merge: YjsWork["merge"] = (question, receive) => {
      if (condensing.length > 0) synchronousYjsWork.merge(question, receive);
      else condensing.push(() => synchronousYjsWork.merge(question, receive));
    };
    const { copy, received, deliver, answer } = rig({ ...synchronousYjsWork, merge });
    for (const [index, update] of updates.entries()) deliver(index + 1, update);
    expect([condensing.length, received.length]).toEqual([1, 10_001]);
    if (meanwhile === "request") expect(isComplete(answer())).toBe(true);
    if (meanwhile === "snapshot") copy.receiveSnapshot({ position: position(10_002), payload: Y.encodeStateAsUpdate(doc) });
    condensing[0]!();
    expect([meanwhile, copy.bytes < 20_000, isComplete(answer())]).toEqual([meanwhile, true, true]);
  }
});

test("[YRC15] however many edits arrive while some are condensed, no second task condenses them too", () => {
  const merges: (() => void)[] = [];
  const merge: YjsWork["merge"] = (question, receive) => void merges.push(() => synchronousYjsWork.merge(question, receive));
  const { copy, deliver } = rig({ ...synchronousYjsWork, merge });
  const update = typed(["a"])[0]!;
  for (let seq = 1; seq <= 30_000; seq++) deliver(seq, update);
  expect(merges.length).toBe(1);
  merges[0]!();
  for (let seq = 30_001; seq <= 40_000; seq++) deliver(seq, update);
  expect(merges.length).toBe(2);
  merges[1]!();
  expect(copy.bytes).toBeLessThan(15_000 * update.byteLength);
});

/** Counts how often Yjs looks up a client. */
class CountedMap<V> extends Map<number, V> {
  lookUps = 0;

  override get(client: number): V | undefined {
    this.lookUps += 1;
    return super.get(client);
  }
}

test("[YRC13] the deletions of many edits are merged without a look-up of each client in each edit", () => {
  const facts = [1_000, ...Array<number>(1_000).fill(1)].map((clientCount, edit) => {
    const deletes = Y.createDeleteSet();
    deletes.clients = new CountedMap();
    for (let client = 0; client < clientCount; client++) deletes.clients.set(client, [{ clock: edit, len: 1 }]);
    return { kind: "fit" as const, needs: new Map<number, number>(), runs: [], deletes };
  });
  const waiting = [...facts];
  const { copy, deliver } = rig({ ...synchronousYjsWork, check: (_, receive) => receive(waiting.shift()!) });
  for (const edit of facts.keys()) deliver(edit + 1, Uint8Array.of(edit));
  expect(copy.contains({ ...facts[0]!, deletes: { clients: new Map([[0, [{ clock: 0, len: 1_001 }]]]) } })).toBe(true);
  expect(copy.deletedRanges).toBe(1_000);
  const lookUps = facts.reduce((sum, { deletes }) => sum + (deletes.clients as CountedMap<unknown>).lookUps, 0);
  expect(lookUps).toBeLessThan(10_000);
});

test("[YRC2] a snapshot replaces older content and is announced to present clients; it is ignored if the copy is newer", () => {
  const { copy, received, deliver, answer } = rig();
  const words = typed(["a", "b", "c", "d"]);
  deliver(1, words[0]!);
  const snapshot = Y.mergeUpdates(words.slice(0, 3));
  copy.receiveSnapshot({ position: position(3), payload: snapshot });
  expect([textOf(received), copy.since]).toEqual(["abc", undefined]);
  deliver(3, words[2]!);
  deliver(4, words[3]!);
  copy.receiveSnapshot({ position: position(2), payload: Y.mergeUpdates(words.slice(0, 2)) });
  expect(textOf([answer()])).toBe("abcd");
  expect(received).toHaveLength(3);
});

test("[YRC3] a request is answered with the content that the client lacks, after all edits received before the request", () => {
  const { deliver, answer } = rig();
  const words = typed(["a", "b", "c"]);
  for (const [index, word] of words.entries()) deliver(index + 1, word);
  const theirs = new Y.Doc();
  Y.applyUpdate(theirs, words[0]!);
  const lacking = answer(Y.encodeStateVector(theirs));
  expect(textOf([words[0]!, lacking])).toBe("abc");
  expect(lacking.byteLength).toBeLessThan(answer().byteLength);
});

test("[YRC4] while a thread reads an edit, later edits and requests wait for it", () => {
  const waiting: (() => void)[] = [];
  const work: YjsWork = {
    ...synchronousYjsWork,
    check: (update, receive) => void waiting.push(() => synchronousYjsWork.check(update, receive)),
  };
  const { copy, received, deliver } = rig(work);
  const [a, b] = typed(["a", "b"]);
  deliver(1, a!);
  deliver(2, b!);
  let answered: Uint8Array | undefined;
  copy.answer(Uint8Array.of(0), (merged) => (answered = merged?.answer));
  expect([waiting.length, received, answered]).toEqual([1, [], undefined]);
  waiting.shift()!();
  expect([waiting.length, textOf(received), answered]).toEqual([1, "a", undefined]);
  waiting.shift()!();
  expect([textOf(received), textOf([answered!])]).toEqual(["ab", "ab"]);
});

test("[YRC5] a copy that is too large is lost once, and takes no further edits", () => {
  const { lost, received, deliver } = rig(synchronousYjsWork, 100);
  const [a, b, c] = typed(["a", "b".repeat(200), "c"]);
  deliver(1, a!);
  deliver(2, b!);
  deliver(3, c!);
  expect([received.length, lost]).toEqual([1, [expect.stringContaining("larger than this server holds")]]);
});

test("[YRC6] an edit that no document of the room accepts is left out, also one that is not a Yjs update", () => {
  const { received, leftOut, deliver, answer } = rig();
  const [a, b] = typed(["a", "b"]);
  deliver(1, a!);
  deliver(2, nestingBomb(5_000));
  deliver(3, Uint8Array.of(9, 9, 9));
  deliver(4, b!);
  expect([textOf(received), textOf([answer()]), leftOut.length]).toEqual(["ab", "ab", 2]);
});

test("[YRC7] a thousand typed letters are condensed, and deleted content disappears", () => {
  const { deliver, answer } = rig();
  const doc = new Y.Doc();
  let seq = 0;
  doc.on("update", (update: Uint8Array) => deliver(++seq, update));
  const text = doc.getText("t");
  for (let letter = 0; letter < 1_500; letter++) text.insert(text.length, "x");
  text.delete(0, 1_400);
  const content = answer();
  expect(content.byteLength).toBeLessThan(200);
  expect(textOf([content])).toBe("x".repeat(100));
});

test("[YRC8] the copy knows whether an update has new content or deletions", () => {
  const { copy, deliver } = rig();
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "abc");
  deliver(1, Y.encodeStateAsUpdate(doc));
  const contains = (): boolean => {
    let contained = false;
    synchronousYjsWork.check(Y.encodeStateAsUpdate(doc), (facts) => (contained = facts?.kind === "fit" && copy.contains(facts)));
    return contained;
  };
  expect(contains()).toBe(true);
  doc.getText("t").delete(0, 1);
  expect(contains()).toBe(false);
  deliver(2, Y.encodeStateAsUpdate(doc));
  expect(contains()).toBe(true);
  doc.getText("t").insert(0, "x");
  expect(contains()).toBe(false);
});

test("[YRC10] the copy contains content that waits for a lost edit, whether an edit or a snapshot brought it", () => {
  const [base, ...pending] = typed(["never arrives", "b", "c"]);
  const asked = Y.mergeUpdates(pending);
  const byEdits = rig();
  for (const [index, update] of pending.entries()) byEdits.deliver(index + 1, update);
  const bySnapshot = rig();
  bySnapshot.copy.receiveSnapshot({ position: position(2), payload: asked });
  for (const { copy, deliver } of [byEdits, bySnapshot]) {
    const contains = (update: Uint8Array): boolean => {
      const facts = factsOf(update);
      return facts.kind === "fit" && copy.contains(facts);
    };
    const author = Y.parseUpdateMeta(asked).from.keys().next().value!;
    expect([contains(asked), contains(Y.mergeUpdates([base!, asked])), copy.clockOf(author)]).toEqual([true, false, 0]);
    deliver(3, base!);
    expect([contains(Y.mergeUpdates([base!, asked])), copy.clockOf(author)]).toEqual([true, 15]);
  }
});

test("[YRC9] rooms of different tenants are never shared, and a copy ends with its last user", () => {
  const counts: number[] = [];
  const rooms = new SharedRooms(
    { yRoomBytesMax: 1_000 },
    { workOf: () => synchronousYjsWork, reportLeftOut: () => {}, reportRooms: (count) => void counts.push(count) },
  );
  const [notes, others] = ["a.notes" as RoomKey, "b.notes" as RoomKey];
  const [one, same, other] = [rooms.take(notes), rooms.take(notes), rooms.take(others)];
  expect([one.copy === same.copy, one.copy === other.copy]).toEqual([true, false]);
  one.release();
  expect(rooms.take(notes).copy).toBe(one.copy);
  same.release();
  same.copy.lose("for this test");
  const fresh = rooms.take(notes);
  expect(fresh.copy).not.toBe(one.copy);
  fresh.release();
  other.release();
  expect(counts.at(-1)).toBe(0);
});
