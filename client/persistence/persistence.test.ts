/** Rooms stored on a device, through the complete client: pages end at any moment, and other pages follow. */

import { expect, test } from "vitest";

import { MemoryStore, receivedFrames, HOUR, lengthsInLog, MINUTE, NOTES, serverOn } from "../testing/memory-store.ts";
import { ModelServer } from "../testing/model-server.ts";
import { TestPage } from "../testing/test-page.ts";
import { DeviceStore } from "./device-store.ts";

test("[KEE1] a page reloaded without a connection shows the document and the typed edits, and sends them once", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const before = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  before.type("saved ");
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  before.type("typed on a train ");
  expect(before.provider.stored).toBe(false);
  await server.clock.advance(1_000);
  expect([before.provider.saved, before.provider.stored]).toEqual([false, true]);
  before.close();

  const after = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect([after.text, after.provider.saved, after.provider.stored, after.provider.unsavedEdits, after.events]).toEqual([
    "saved typed on a train ",
    false,
    true,
    1,
    ["restored"],
  ]);
  after.type("and in a tunnel");
  await server.clock.advance(1_000);
  server.reachable = true;
  await server.clock.advance(MINUTE);
  const bob = new TestPage(server, undefined, 3);
  await server.clock.advance(1_000);
  expect([bob.text, after.text]).toEqual(["saved typed on a train and in a tunnel", bob.text]);
  expect([after.provider.saved, lengthsInLog(server), after.events]).toEqual([true, 2, ["restored"]]);
});

test.each([
  ["an edit that was sent goes out again with the same client key and counter", { editLost: 1 }, [[2, 1]]],
  ["an edit that the log has does not go out again", { committedFrameLost: 1 }, []],
])("[KEE2] of an earlier page %s, and is ordered once", async (_, faults, repeated) => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const before = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  before.type("one ");
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, ...faults };
  before.type("two ");
  await server.clock.advance(2); // The edit is sent, and not acknowledged.
  expect(before.provider.saved).toBe(false);
  await server.clock.advance(4);
  before.close();
  await server.clock.advance(MINUTE);
  server.faults = { ...server.faults, committedFrameLost: 0, editLost: 0 };

  const sentBefore = receivedFrames(server, "edit").length;
  const after = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect(receivedFrames(server, "join").map(({ clientKey }) => clientKey.slice(0, 5))).toEqual(["key-1", "key-1", "key-2"]);
  expect(
    receivedFrames(server, "edit")
      .slice(sentBefore)
      .map(({ counter, ackedThrough }) => [counter, ackedThrough]),
  ).toEqual(repeated);
  expect([after.text, after.provider.saved, lengthsInLog(server)]).toEqual(["one two ", true, 2]);
  after.type("three");
  await server.clock.advance(1_000);
  expect([after.provider.saved, lengthsInLog(server)]).toEqual([true, 3]);
});

test("[KEE3] no edit is sent before it is stored, and typing continues meanwhile", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  device.isStuck = true;
  page.type("a");
  await server.clock.advance(2_000);
  page.type("b");
  await server.clock.advance(2_900);
  expect(receivedFrames(server, "edit")).toEqual([]);
  await server.clock.advance(1_000); // The store exceeds its time.
  expect([page.provider.saved, page.provider.stored, page.events]).toEqual([true, true, ["restored", "storage-failed"]]);
  page.type("c");
  await server.clock.advance(100);
  expect([page.provider.saved, page.events.length], "nothing waits for it any more").toEqual([true, 2]);
});

test("[KEE4] a full device is reported once; the room continues, and stores again when there is space", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  device.isFull = true;
  page.type("a");
  await server.clock.advance(5 * MINUTE);
  expect([page.provider.saved, page.events]).toEqual([true, ["restored", "storage-failed"]]);
  server.reachable = false;
  server.cut();
  page.type("b");
  await server.clock.advance(MINUTE);
  expect([page.provider.stored, page.events.length]).toEqual([false, 2]);
  device.isFull = false;
  await server.clock.advance(MINUTE);
  expect(page.provider.stored).toBe(true);
  page.close();
  const after = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect(after.text).toBe("ab");
});

test("[KEE4] the room works without a store that cannot be opened or does not answer", async () => {
  const server = serverOn();
  const refusing = new DeviceStore({ open: () => Promise.reject(new Error("no IndexedDB here")) });
  const page = new TestPage(server, undefined, 1, { store: refusing });
  page.type("a");
  const stuck = new MemoryStore();
  stuck.isStuck = true;
  const other = new TestPage(server, stuck, 2);
  other.type("b");
  await server.clock.advance(2_000);
  expect([page.provider.saved, other.provider.saved]).toEqual([true, false]);
  await server.clock.advance(7_000);
  expect([page.provider.saved, other.provider.saved, page.events, other.events]).toEqual([
    true,
    true,
    ["storage-failed"],
    ["storage-failed"],
  ]);
  expect([...page.text].sort().join("")).toBe("ab");
});

test("[KEE5] two pages of one device each send their own edits; the page that opens after both has all of them", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [left, right] = [new TestPage(server, device, 1), new TestPage(server, device, 2)];
  await server.clock.advance(1_000);
  left.type("both ");
  await server.clock.advance(1_000);
  server.commits = false; // Nothing is acknowledged from now on.
  left.type("left ");
  right.type("right ");
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  left.type("offline ");
  await server.clock.advance(1_000);
  right.close();
  left.close();
  const after = new TestPage(server, device, 3);
  await server.clock.advance(1_000);
  expect(after.provider.unsavedEdits).toBe(3);
  server.room(NOTES).failOver(); // The next owner does not know the waiting edits.
  server.commits = server.reachable = true;
  await server.clock.advance(MINUTE);
  for (const typed of ["both ", "left ", "right ", "offline "]) expect(after.text.split(typed)).toHaveLength(2);
  expect([after.provider.saved, lengthsInLog(server)]).toEqual([true, 4]);
  const keys = receivedFrames(server, "join")
    .slice(-3)
    .map(({ clientKey }) => clientKey.slice(0, 5));
  expect([keys.slice(0, 2).sort(), keys[2]]).toEqual([["key-1", "key-2"], "key-3"]);
});

test("[KEE5] a page does not take over the edits of a page that still runs", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const left = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  left.type("mine ");
  await server.clock.advance(1_000);
  const right = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect([right.text, right.provider.unsavedEdits]).toEqual(["", 0]);
  server.reachable = true;
  await server.clock.advance(MINUTE);
  expect([left.text, right.text, lengthsInLog(server)]).toEqual(["mine ", "mine ", 1]);
});

test("[KEE6] edits of others are stored too, and only later ones are requested", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [ann, bob] = [new TestPage(server, device, 1), new TestPage(server, undefined, 2)];
  await server.clock.advance(1_000);
  for (const word of ["a ", "b ", "c "]) {
    bob.type(word);
    await server.clock.advance(1_000);
  }
  expect(ann.provider.seq).toBe(3);
  ann.close();
  bob.type("d ");
  await server.clock.advance(1_000);
  const again = new TestPage(server, device, 3);
  await server.clock.advance(1_000);
  expect([again.text, receivedFrames(server, "join").at(-1)?.position.seq], "the last known once more, to see that it is the same").toEqual(
    ["a b c d ", 2],
  );
  expect([server.room(NOTES).head, again.provider.saved]).toEqual([4, true]);
});

test("[KEE7] after hours away the server has forgotten the page, and the document is still complete", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [ann, bob] = [new TestPage(server, device, 1), new TestPage(server, undefined, 2)];
  await server.clock.advance(1_000);
  ann.type("before ");
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  ann.type("sent ");
  await server.clock.advance(6);
  ann.close(); // The edit is committed, and its page does not know that.
  server.faults = { ...server.faults, committedFrameLost: 0 };
  const away = new ModelServer(server.clock);
  away.reachable = false;
  const offline = new TestPage(away, device, 3);
  await server.clock.advance(1_000);
  for (let hour = 0; hour < 5; hour++) {
    offline.type(`hour${hour} `);
    bob.type(`office${hour} `);
    await server.clock.advance(HOUR);
  }
  offline.close();
  server.room(NOTES).forgetClients();
  const back = new TestPage(server, device, 4);
  await server.clock.advance(MINUTE);
  expect(back.text).toBe(bob.text);
  for (const typed of [
    "before ",
    "sent ",
    ...Array.from({ length: 5 }, (_, hour) => `hour${hour} `),
    ...Array.from({ length: 5 }, (_, hour) => `office${hour} `),
  ])
    expect(back.text.split(typed)).toHaveLength(2);
  expect(back.provider.saved).toBe(true);
});

test("[KEE1] edits typed immediately before the page leaves the room are stored", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  ann.type("last words");
  ann.provider.destroy();
  await server.clock.advance(1_000);
  const again = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect(again.text).toBe("last words");
});

test("[KEE1] edits that a listener types immediately before it leaves the room permanently are stored", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new TestPage(server, device, 1);
  ann.provider.on("synced", () => {
    ann.type("last words");
    ann.provider.destroy();
  });
  await server.clock.advance(1_000);
  expect([server.clock.pending, server.room(NOTES).head]).toEqual([0, 0]);
  const again = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect([again.text, again.provider.saved, server.room(NOTES).head]).toEqual(["last words", true, 1]);
});

test("[KEE1] a page that leaves a room and enters it again at once has its last edits", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = { store: new DeviceStore(device.forPage()) };
  const ann = new TestPage(server, undefined, 1, page);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  ann.type("last words");
  ann.provider.destroy();
  const again = new TestPage(server, undefined, 2, page);
  await server.clock.advance(1_000);
  expect([again.text, again.events, again.provider.unsavedEdits]).toEqual(["last words", ["restored"], 1]);
});

test("[STO13] a room that is destroyed while its store opens leaves the edits of earlier pages to the next one", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  server.reachable = false;
  const earlier = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  earlier.type("typed on a train");
  await server.clock.advance(1_000);
  earlier.close();
  device.opening = () => new Promise((open) => void server.clock.after(100, open));
  const page = { store: new DeviceStore(device.forPage()) };
  new TestPage(server, undefined, 2, page).provider.destroy(); // As an effect under StrictMode.
  new TestPage(server, undefined, 3, page).provider.destroy();
  const shown = new TestPage(server, undefined, 4, page);
  const other = new TestPage(server, undefined, 5, { ...page, room: "other" });
  await server.clock.advance(150);
  expect([shown.events, other.events], "other rooms do not wait").toEqual([[], ["restored"]]);
  for (let step = 0; step < 10; step++) await server.clock.advance(100); // The clock waits for few promises in each step.
  expect([shown.text, shown.events, shown.provider.unsavedEdits]).toEqual(["typed on a train", ["restored"], 1]);
});

test("[STO13] a room that was destroyed while its store did not open keeps no other page from opening it", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = { store: new DeviceStore(device.forPage()) };
  device.isStuck = true;
  const first = new TestPage(server, undefined, 1, page);
  await server.clock.advance(1_000);
  first.provider.destroy();
  device.isStuck = false;
  const next = new TestPage(server, undefined, 2, page);
  await server.clock.advance(20_000);
  expect(next.events.at(-1)).toBe("restored");
});

test("[KEE1] a destroyed room closes the store once all is written, and leaves nothing running", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  ann.type("a");
  ann.provider.destroy();
  await server.clock.advance(1_000);
  expect(server.clock.pending).toBe(0);
});

test("[KEE10] unsent edits are written again when the store reports a possible loss, and count as not stored until then", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  server.reachable = false;
  const before = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  before.type("typed on a train ");
  await server.clock.advance(1_000);
  const stored: boolean[] = [before.provider.stored];
  before.provider.on("stored", (isStored) => stored.push(isStored));
  device.clear();
  await server.clock.advance(1_000);
  expect([stored, before.events]).toEqual([[true, false, true], ["restored"]]);
  before.close();
  const after = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect(after.text).toBe("typed on a train ");
});

test("[KEE10] when the repeated write of unsent edits fails, the failure is reported at once", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  page.type("saved ");
  await server.clock.advance(1_000);
  device.isFull = true;
  device.clear();
  await server.clock.advance(1_000);
  expect(page.events).toEqual(["restored", "storage-failed"]);
});

test.each([
  ["its page is a member", async (server: ModelServer) => server.send({ type: "left", channel: 1, reason: "deleted" })],
  [
    "its page is offline",
    async (server: ModelServer) => {
      server.refuseJoins = { reason: "deleted", retryAfterMs: 0 };
      server.cut();
    },
  ],
] as const)(
  "[KEE8] the device keeps nothing of a room that is deleted while %s, unsent edits included, and nobody joins it again",
  async (_, remove) => {
    const [server, device] = [serverOn(), new MemoryStore()];
    const page = new TestPage(server, device, 1);
    const refusals: unknown[] = [];
    page.provider.on("refused", (refusal) => refusals.push(refusal));
    await server.clock.advance(1_000);
    page.type("ordered ");
    await server.clock.advance(1_000);
    server.commits = false;
    page.type("not ordered");
    await server.clock.advance(1_000);
    await remove(server);
    await server.clock.advance(MINUTE);
    expect(refusals).toMatchObject([{ kind: "room-refused", reason: "deleted" }]);
    expect([page.provider.status, page.provider.stored]).toEqual(["stopped", false]);
    const joins = receivedFrames(server, "join").length;
    page.type("on and on");
    await server.clock.advance(HOUR);
    expect(receivedFrames(server, "join")).toHaveLength(joins);
    page.close();

    server.refuseJoins = undefined;
    server.reachable = false;
    const after = new TestPage(server, device, 2);
    await server.clock.advance(1_000);
    expect([after.text, after.provider.unsavedEdits]).toEqual(["", 0]);
  },
);

test.each(["while it waits for the snapshot", "as it has it"])(
  "[KEE11] edits that the log lost stay stored until the room has them again: a page that ends %s removes nothing",
  async (moment) => {
    const [server, device] = [serverOn(), new MemoryStore()];
    const first = new TestPage(server, device, 1);
    await server.clock.advance(1_000);
    for (const word of ["known ", "lost"]) {
      first.type(word);
      await server.clock.advance(1_000);
    }
    expect(first.provider.saved).toBe(true);
    first.close();
    server.room().rollBackTo(1);
    server.room().trimmedThrough = 1;

    server.snapshotsAvailable = false;
    const second = new TestPage(server, device, 2);
    await server.clock.advance(MINUTE);
    expect([second.text, second.provider.stored]).toEqual(["known lost", false]);
    if (moment === "as it has it") second.provider.on("synced", (synced) => synced && second.close());
    else second.close();
    server.snapshotsAvailable = true;
    await server.clock.advance(MINUTE);

    const third = new TestPage(server, device, 3);
    await server.clock.advance(MINUTE);
    const elsewhere = new TestPage(server, undefined, 4);
    await server.clock.advance(1_000);
    expect([third.text, third.provider.saved, elsewhere.text]).toEqual(["known lost", true, "known lost"]);
  },
);

test("[KEE11] once the room has the lost edits again, the device stores the room's current state", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  for (const word of ["known ", "lost ", "found"]) {
    ann.type(word);
    await server.clock.advance(1_000);
    if (word === "lost ") server.room().rollBackTo(1);
    if (word === "lost ") server.cut();
    await server.clock.advance(MINUTE);
  }
  expect([ann.provider.saved, ann.provider.stored]).toEqual([true, true]);
  ann.close();
  server.reachable = false;
  const after = new TestPage(server, device, 2);
  await server.clock.advance(1_000);
  expect([after.text, after.provider.seq, after.provider.unsavedEdits]).toEqual(["known lost found", 3, 0]);
});
