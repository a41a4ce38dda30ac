/** The sending of edits: rate, size, and the problems reported when edits may not be sent. */

import { expect, test } from "vitest";

import { App, bytes, receivedFrames, MINUTE, NOTES, serverOn } from "../testing/test-page.ts";
import { LIMITS } from "../testing/model-connection.ts";

test("[SEN1] the first edits go out at once, those of a busy writer at the rate limit, merged", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const merge = (payloads: readonly Uint8Array[]): Uint8Array => Uint8Array.from(payloads.flatMap((payload) => [...payload]));
  const ann = new App(server, 1, { format: { merge, split: () => undefined } });
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(20);
  expect(receivedFrames(server, "edit").map(({ payload }) => `${payload}`)).toEqual(["1,2,3"]);
  for (let value = 0; value < 1_000; value++) {
    ann.host.send(bytes(value % 251));
    await server.clock.advance(20);
  }
  await server.clock.advance(1_000);
  expect(ann.host.saved).toBe(true);
  const { length } = receivedFrames(server, "edit");
  expect(length).toBeGreaterThan(180);
  expect(length).toBeLessThan(21 + 22 * 9 + 2);
});

test("[SEN2] after a long network stall the server does not receive more than it allows at once", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 }; // Edits are lost as if they were still on their way.
  for (let value = 0; value < 100; value++) {
    ann.host.send(bytes(value));
    await server.clock.advance(90);
  }
  expect(receivedFrames(server, "edit").length).toBeLessThanOrEqual(LIMITS.editBurst);
});

test("[SEN3] edits wait while the server rejects them, and continue when it accepts them again", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "refusing");
  server.room(NOTES).refusing = "log-stalled";
  for (let value = 1; value <= 30; value++) ann.host.send(bytes(value));
  await server.clock.advance(5_000);
  expect([ann.host.saving, ann.host.unsavedEdits]).toEqual(["refusing", 30]);
  expect(receivedFrames(server, "edit").length, "then one each time").toBeLessThanOrEqual(30 + 5_000 / 200);
  server.room(NOTES).refusing = undefined;
  server.setSaving(NOTES, "saved");
  await server.clock.advance(5_000);
  expect([ann.host.saved, bob.edits.length]).toEqual([true, 30]);
});

test("[SEN4] in a read-only room nothing is sent; the application is notified once, and edits are kept", async () => {
  const server = serverOn();
  server.rights = { read: true, write: false };
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2]) ann.host.send(bytes(value));
  await server.clock.advance(MINUTE);
  expect(receivedFrames(server, "edit")).toEqual([]);
  expect(ann.problems.map(({ kind }) => kind)).toEqual(["read-only"]);
  expect([ann.host.rights, ann.host.unsavedEdits]).toEqual([{ read: true, write: false }, 2]);
  server.rights = { read: true, write: true };
  server.cut();
  await server.clock.advance(MINUTE);
  expect(ann.host.saved).toBe(true);
});

test("[SEN4] a rejection for lack of write permission takes effect while edits are on their way", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.room(NOTES).refusing = "read-only";
  ann.host.send(bytes(1));
  await server.clock.advance(MINUTE);
  expect([receivedFrames(server, "edit").length, ann.problems.map(({ kind }) => kind), ann.host.unsavedEdits]).toEqual([
    1,
    ["read-only"],
    1,
  ]);
});

test("[SEN5] an edit over the limit is reported, never sent, and does not stop the others", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.send(new Uint8Array(LIMITS.editBytesMax + 1));
  ann.host.send(bytes(2));
  await server.clock.advance(1_000);
  expect(ann.problems).toMatchObject([{ kind: "edit-too-large", bytesMax: LIMITS.editBytesMax }]);
  expect(ann.edits).toEqual(["1:2 own"]);
});

test("[SEN5] an edit that the server finds too large is reported once, and later edits continue", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.room(NOTES).bytesMax = 5;
  for (const payload of [bytes(1), new Uint8Array(9), bytes(3)]) ann.host.send(payload);
  await server.clock.advance(MINUTE);
  expect(ann.problems.map(({ kind }) => kind)).toEqual(["edit-too-large"]);
  expect(server.room(NOTES).log.map(({ payload }) => `${payload}`)).toEqual(["1", "3"]);
  expect(ann.host.saved).toBe(true);
});

test("[SEN5] an edit that the server finds too large despite its announced limit goes out in pieces, without loss", async () => {
  const server = serverOn();
  const merge = (payloads: readonly Uint8Array[]): Uint8Array => Uint8Array.from(payloads.flatMap((payload) => [...payload]));
  const split = (payload: Uint8Array, bytesMax: number): Uint8Array[] =>
    Array.from({ length: Math.ceil(payload.byteLength / bytesMax) }, (_, index) => payload.slice(index * bytesMax, (index + 1) * bytesMax));
  const ann = new App(server, 1, { format: { merge, split } });
  await server.clock.advance(1_000);
  server.room(NOTES).bytesMax = 7;
  const typed = Array.from({ length: 100 }, (_, index) => index);
  ann.host.send(Uint8Array.from(typed));
  ann.host.send(bytes(100));
  expect(ann.host.unsavedEdits).toBe(2);
  await server.clock.advance(MINUTE);
  expect(ann.problems).toEqual([]);
  expect(server.room(NOTES).log.flatMap(({ payload }) => [...payload])).toEqual([...typed, 100]);
  expect([ann.host.saved, receivedFrames(server, "join").length]).toEqual([true, 5]);
});

const LOWER = { ...LIMITS, frameBytesMax: 1_000, editBytesMax: 900 };

test("[SEN6] an edit on its way is cut into pieces for a server with a smaller frame limit", async () => {
  const server = serverOn();
  const merge = (payloads: readonly Uint8Array[]): Uint8Array => Uint8Array.from(payloads.flatMap((payload) => [...payload]));
  const split = (payload: Uint8Array, bytesMax: number): Uint8Array[] =>
    Array.from({ length: Math.ceil(payload.byteLength / bytesMax) }, (_, index) => payload.slice(index * bytesMax, (index + 1) * bytesMax));
  const ann = new App(server, 1, { format: { merge, split } });
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 }; // The edit is lost as if it were still on its way.
  const pasted = Array.from({ length: 4_000 }, (_, index) => index % 251);
  ann.host.send(Uint8Array.from(pasted));
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 0 };
  server.limits = LOWER;
  server.cut();
  await server.clock.advance(MINUTE);
  expect([ann.refusals, ann.problems, ann.host.saved]).toEqual([[], [], true]);
  expect(server.room(NOTES).log.flatMap(({ payload }) => [...payload])).toEqual(pasted);
});

test("[SEN6] an edit that cannot be cut is reported, and later edits continue", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 };
  for (const payload of [bytes(1), new Uint8Array(4_000), bytes(3)]) ann.host.send(payload);
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 0 };
  server.limits = LOWER;
  server.cut();
  await server.clock.advance(MINUTE);
  expect([ann.refusals, ann.problems.map(({ kind }) => kind), ann.host.saved]).toEqual([[], ["edit-too-large"], true]);
  expect(server.room(NOTES).log.map(({ payload }) => `${payload}`)).toEqual(["1", "3"]);
});

test("[SEN7] an edit that was committed when the connection broke is not sent again, even if the next server accepts only smaller frames", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  for (const payload of [bytes(1), new Uint8Array(4_000), bytes(3)]) ann.host.send(payload);
  await server.clock.advance(1_000);
  server.cut();
  server.commits = true;
  server.commit(NOTES);
  server.limits = LOWER;
  await server.clock.advance(MINUTE);
  expect([ann.problems, ann.host.saved]).toEqual([[], true]);
  expect(server.room(NOTES).log.map(({ payload }) => payload.byteLength)).toEqual([1, 4_000, 1]);
});

test.each([
  ["after a long absence is not sent again", 3 * MINUTE, 0],
  ["a moment ago may be sent again at once", 1_000, 1],
])("[SEN8] an edit that was committed when the connection broke, %s", async (_, awayMs, repeats) => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  ann.host.send(bytes(1));
  await server.clock.advance(1_000);
  ann.host.disconnect();
  await server.clock.advance(1_000);
  server.commits = true;
  server.commit(NOTES);
  ann.host.send(bytes(2));
  await server.clock.advance(awayMs);
  const before = receivedFrames(server, "edit").length;
  ann.host.connect();
  await server.clock.advance(MINUTE);
  expect(ann.host.saved).toBe(true);
  expect(
    receivedFrames(server, "edit")
      .slice(before)
      .map(({ payload }) => `${payload}`),
  ).toEqual(repeats === 0 ? ["2"] : ["1", "2"]);
  expect(server.room(NOTES).log.map(({ payload }) => `${payload}`)).toEqual(["1", "2"]);
});

test.each([
  ["at the same time", 0],
  ["after it has received the other's edits", 1_000],
  ["while it is away", -1],
])("[SEN9] two copies of a page with one client key lose no edit: the second types %s", async (_, afterMs) => {
  const server = serverOn();
  const [ann, copy] = [new App(server, 1), new App(server, 1)];
  await server.clock.advance(1_000);
  if (afterMs < 0) copy.host.disconnect();
  for (const value of [1, 2]) ann.host.send(bytes(value));
  await server.clock.advance(Math.max(0, afterMs));
  for (const value of [101, 102, 103]) copy.host.send(bytes(value));
  await server.clock.advance(1_000);
  if (afterMs < 0) copy.host.connect();
  await server.clock.advance(MINUTE);
  ann.host.send(bytes(3));
  await server.clock.advance(MINUTE);
  const logged = server.room(NOTES).log.map(({ payload }) => payload[0]!);
  expect([...new Set(logged)].sort((a, b) => a - b)).toEqual([1, 2, 3, 101, 102, 103]);
  for (const app of [ann, copy]) {
    expect([app.host.saved, app.host.seq, app.problems]).toEqual([true, logged.length, []]);
    expect(app.edits.map((edit) => Number.parseInt(edit.split(":")[1]!, 10))).toEqual(logged);
  }
  const others = (app: App): number[] => app.edits.filter((edit) => !edit.endsWith("own")).map((edit) => Number(edit.split(":")[1]));
  expect(others(copy), "shown as another's").toEqual(expect.arrayContaining([1, 2, 3]));
  expect(others(ann), "shown as another's").toEqual(expect.arrayContaining([101, 102, 103]));
});
