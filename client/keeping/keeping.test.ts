/** Rooms kept on a device, through the whole client: pages end at any moment, and others come after them. */

import { expect, test } from "vitest";

import { heard, HOUR, lengthsInLog, MINUTE, NOTES, serverOn } from "../testing/kept-rooms.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { ModelServer } from "../testing/model-server.ts";
import { Page } from "../testing/page.ts";

test("[KEE1] a page that is loaded again without a connection shows the document and what was typed, and sends it once", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const before = new Page(server, device, 1);
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

  const after = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect([after.text, after.provider.saved, after.provider.stored, after.provider.unsavedEdits, after.told]).toEqual([
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
  const bob = new Page(server, undefined, 3);
  await server.clock.advance(1_000);
  expect([bob.text, after.text]).toEqual(["saved typed on a train and in a tunnel", bob.text]);
  expect([after.provider.saved, lengthsInLog(server), after.told]).toEqual([true, 2, ["restored"]]);
});

test("[KEE2] what had been sent goes out again under the same client key and counter, and is ordered once", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const before = new Page(server, device, 1);
  await server.clock.advance(1_000);
  before.type("one ");
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  before.type("two ");
  await server.clock.advance(2); // Sent, and not acknowledged.
  expect(before.provider.saved).toBe(false);
  await server.clock.advance(4);
  before.close();
  await server.clock.advance(MINUTE);
  server.faults = { ...server.faults, committedFrameLost: 0 };

  const sentBefore = heard(server, "edit").length;
  const after = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect(heard(server, "join").map(({ clientKey }) => clientKey.slice(0, 5))).toEqual(["key-1", "key-1", "key-2"]);
  expect(
    heard(server, "edit")
      .slice(sentBefore)
      .map(({ counter, ackedThrough }) => [counter, ackedThrough]),
  ).toEqual([[2, 1]]);
  expect([after.text, after.provider.saved, lengthsInLog(server)]).toEqual(["one two ", true, 2]);
  after.type("three");
  await server.clock.advance(1_000);
  expect([after.provider.saved, lengthsInLog(server)]).toEqual([true, 3]);
});

test("[KEE3] no edit goes out before it is kept, and typing goes on meanwhile", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = new Page(server, device, 1);
  await server.clock.advance(1_000);
  device.isStuck = true;
  page.type("a");
  await server.clock.advance(2_000);
  page.type("b");
  await server.clock.advance(2_900);
  expect(heard(server, "edit")).toEqual([]);
  await server.clock.advance(1_000); // The store takes too long.
  expect([page.provider.saved, page.provider.stored, page.told]).toEqual([true, true, ["restored", "storage-failed"]]);
  page.type("c");
  await server.clock.advance(100);
  expect([page.provider.saved, page.told.length], "nothing waits for it any more").toEqual([true, 2]);
});

test("[KEE4] a device that is full is told once; the room goes on, and keeps again when there is room", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = new Page(server, device, 1);
  await server.clock.advance(1_000);
  device.isFull = true;
  page.type("a");
  await server.clock.advance(5 * MINUTE);
  expect([page.provider.saved, page.told]).toEqual([true, ["restored", "storage-failed"]]);
  server.reachable = false;
  server.cut();
  page.type("b");
  await server.clock.advance(MINUTE);
  expect([page.provider.stored, page.told.length]).toEqual([false, 2]);
  device.isFull = false;
  await server.clock.advance(MINUTE);
  expect(page.provider.stored).toBe(true);
  page.close();
  const after = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect(after.text).toBe("ab");
});

test("[KEE4] a store that cannot be opened, or does not answer, is done without", async () => {
  const server = serverOn();
  const refusing = { open: () => Promise.reject(new Error("no IndexedDB here")) };
  const page = new Page(server, undefined, 1, { store: refusing });
  page.type("a");
  const stuck = new MemoryStore();
  stuck.isStuck = true;
  const other = new Page(server, stuck, 2);
  other.type("b");
  await server.clock.advance(2_000);
  expect([page.provider.saved, other.provider.saved]).toEqual([true, false]);
  await server.clock.advance(7_000);
  expect([page.provider.saved, other.provider.saved, page.told, other.told]).toEqual([true, true, ["storage-failed"], ["storage-failed"]]);
  expect([...page.text].sort().join("")).toBe("ab");
});

test("[KEE5] two pages of one device each send what was typed in them; the one that comes after both has all of it", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [left, right] = [new Page(server, device, 1), new Page(server, device, 2)];
  await server.clock.advance(1_000);
  left.type("both ");
  await server.clock.advance(1_000);
  server.commits = false; // Nothing is acknowledged from here on.
  left.type("left ");
  right.type("right ");
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  left.type("offline ");
  await server.clock.advance(1_000);
  right.close();
  left.close();
  const after = new Page(server, device, 3);
  await server.clock.advance(1_000);
  expect(after.provider.unsavedEdits).toBe(3);
  server.room(NOTES).failOver(); // Another owner, who knows nothing of what waited.
  server.commits = server.reachable = true;
  await server.clock.advance(MINUTE);
  for (const typed of ["both ", "left ", "right ", "offline "]) expect(after.text.split(typed)).toHaveLength(2);
  expect([after.provider.saved, lengthsInLog(server)]).toEqual([true, 4]);
  const keys = heard(server, "join")
    .slice(-3)
    .map(({ clientKey }) => clientKey.slice(0, 5));
  expect([keys.slice(0, 2).sort(), keys[2]]).toEqual([["key-1", "key-2"], "key-3"]);
});

test("[KEE5] what is left by a page that still runs is let be", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const left = new Page(server, device, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  left.type("mine ");
  await server.clock.advance(1_000);
  const right = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect([right.text, right.provider.unsavedEdits]).toEqual(["", 0]);
  server.reachable = true;
  await server.clock.advance(MINUTE);
  expect([left.text, right.text, lengthsInLog(server)]).toEqual(["mine ", "mine ", 1]);
});

test("[KEE6] what others write is kept too, and only what came since is asked for", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [ann, bob] = [new Page(server, device, 1), new Page(server, undefined, 2)];
  await server.clock.advance(1_000);
  for (const word of ["a ", "b ", "c "]) {
    bob.type(word);
    await server.clock.advance(1_000);
  }
  expect(ann.provider.seq).toBe(3);
  ann.close();
  bob.type("d ");
  await server.clock.advance(1_000);
  const again = new Page(server, device, 3);
  await server.clock.advance(1_000);
  expect([again.text, heard(server, "join").at(-1)?.position.seq], "the last known once more, to see that it is the same").toEqual([
    "a b c d ",
    2,
  ]);
  expect([server.room(NOTES).head, again.provider.saved]).toEqual([4, true]);
});

test("[KEE7] away for hours: the server has forgotten the page, and the document is whole all the same", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [ann, bob] = [new Page(server, device, 1), new Page(server, undefined, 2)];
  await server.clock.advance(1_000);
  ann.type("before ");
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  ann.type("sent ");
  await server.clock.advance(6);
  ann.close(); // Its edit is committed, and it does not know.
  server.faults = { ...server.faults, committedFrameLost: 0 };
  const away = new ModelServer(server.clock);
  away.reachable = false;
  const offline = new Page(away, device, 3);
  await server.clock.advance(1_000);
  for (let hour = 0; hour < 5; hour++) {
    offline.type(`hour${hour} `);
    bob.type(`office${hour} `);
    await server.clock.advance(HOUR);
  }
  offline.close();
  server.room(NOTES).forgetClients();
  const back = new Page(server, device, 4);
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

test("[KEE1] what is typed right before the page leaves the room is kept", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new Page(server, device, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  ann.type("last words");
  ann.provider.destroy();
  await server.clock.advance(1_000);
  const again = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect(again.text).toBe("last words");
});

test("[KEE1] what a listener types right before it leaves the room for good is kept", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new Page(server, device, 1);
  ann.provider.on("synced", () => {
    ann.type("last words");
    ann.provider.destroy();
  });
  await server.clock.advance(1_000);
  expect([server.clock.pending, server.room(NOTES).head]).toEqual([0, 0]);
  const again = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect([again.text, again.provider.saved, server.room(NOTES).head]).toEqual(["last words", true, 1]);
});

test("[KEE1] a page that leaves a room and enters it again at once has what it typed last", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new Page(server, device, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.cut();
  ann.type("last words");
  ann.provider.destroy();
  const again = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect([again.text, again.told, again.provider.unsavedEdits]).toEqual(["last words", ["restored"], 1]);
});

test("[KEE1] destroyed it lets go of the store once all is written, and leaves nothing running", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new Page(server, device, 1);
  await server.clock.advance(1_000);
  ann.type("a");
  ann.provider.destroy();
  await server.clock.advance(1_000);
  expect(server.clock.pending).toBe(0);
});

test("[KEE10] what waits is written anew where the store says that it may be gone, and counts as not stored until then", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  server.reachable = false;
  const before = new Page(server, device, 1);
  await server.clock.advance(1_000);
  before.type("typed on a train ");
  await server.clock.advance(1_000);
  const stored: boolean[] = [before.provider.stored];
  before.provider.on("stored", (isStored) => stored.push(isStored));
  device.clear();
  await server.clock.advance(1_000);
  expect([stored, before.told]).toEqual([[true, false, true], ["restored"]]);
  before.close();
  const after = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect(after.text).toBe("typed on a train ");
});

test("[KEE10] where it cannot be written anew, that is told at once", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const page = new Page(server, device, 1);
  await server.clock.advance(1_000);
  page.type("saved ");
  await server.clock.advance(1_000);
  device.isFull = true;
  device.clear();
  await server.clock.advance(1_000);
  expect(page.told).toEqual(["restored", "storage-failed"]);
});

test.each([
  ["it is in", async (server: ModelServer) => server.send({ type: "left", channel: 1, reason: "deleted" })],
  [
    "it comes back to",
    async (server: ModelServer) => {
      server.refuseJoins = { reason: "deleted", retryAfterMs: 0 };
      server.cut();
    },
  ],
] as const)(
  "[KEE8] of a room that is deleted while %s nothing stays on the device, what was not sent included, and nobody joins it again",
  async (_, remove) => {
    const [server, device] = [serverOn(), new MemoryStore()];
    const page = new Page(server, device, 1);
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
    const joins = heard(server, "join").length;
    page.type("on and on");
    await server.clock.advance(HOUR);
    expect(heard(server, "join")).toHaveLength(joins);
    page.close();

    server.refuseJoins = undefined;
    server.reachable = false;
    const after = new Page(server, device, 2);
    await server.clock.advance(1_000);
    expect([after.text, after.provider.unsavedEdits]).toEqual(["", 0]);
  },
);

test.each(["while it waits for the snapshot", "as it has it"])(
  "[KEE11] what the log lost stays kept until the room has been given it anew: a page that ends %s takes nothing with it",
  async (moment) => {
    const [server, device] = [serverOn(), new MemoryStore()];
    const first = new Page(server, device, 1);
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
    const second = new Page(server, device, 2);
    await server.clock.advance(MINUTE);
    expect([second.text, second.provider.stored]).toEqual(["known lost", false]);
    if (moment === "as it has it") second.provider.on("synced", (synced) => synced && second.close());
    else second.close();
    server.snapshotsAvailable = true;
    await server.clock.advance(MINUTE);

    const third = new Page(server, device, 3);
    await server.clock.advance(MINUTE);
    const elsewhere = new Page(server, undefined, 4);
    await server.clock.advance(1_000);
    expect([third.text, third.provider.saved, elsewhere.text]).toEqual(["known lost", true, "known lost"]);
  },
);

test("[KEE11] once the room has what the log lost, the device keeps the room as it is now", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const ann = new Page(server, device, 1);
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
  const after = new Page(server, device, 2);
  await server.clock.advance(1_000);
  expect([after.text, after.provider.seq, after.provider.unsavedEdits]).toEqual(["known lost found", 3, 0]);
});
