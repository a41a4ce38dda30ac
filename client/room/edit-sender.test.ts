/** What goes out of a room: how fast, how large, and what is told where it may not. */

import { expect, test } from "vitest";

import { App, bytes, heard, MINUTE, NOTES, serverOn } from "../testing/app.ts";
import { LIMITS } from "../testing/model-server.ts";

test("[SEN1] what is made at once goes out at once, a busy writer's at the pace, merged", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const merge = (payloads: readonly Uint8Array[]): Uint8Array => Uint8Array.from(payloads.flatMap((payload) => [...payload]));
  const ann = new App(server, 1, { format: { merge, split: () => undefined } });
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(20);
  expect(heard(server, "edit").map(({ payload }) => `${payload}`)).toEqual(["1,2,3"]);
  for (let value = 0; value < 1_000; value++) {
    ann.host.send(bytes(value % 251));
    await server.clock.advance(20);
  }
  await server.clock.advance(1_000);
  expect(ann.host.saved).toBe(true);
  const { length } = heard(server, "edit");
  expect(length).toBeGreaterThan(180);
  expect(length).toBeLessThan(21 + 22 * 9 + 2);
});

test("[SEN2] a network that held everything back for long does not bring the server more than it allows at once", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 }; // As if under way.
  for (let value = 0; value < 100; value++) {
    ann.host.send(bytes(value));
    await server.clock.advance(90);
  }
  expect(heard(server, "edit").length).toBeLessThanOrEqual(LIMITS.editBurst);
});

test("[SEN3] while the server refuses, edits wait, and go on by themselves when it takes them again", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "refusing");
  server.room(NOTES).refusing = "log-stalled";
  for (let value = 1; value <= 30; value++) ann.host.send(bytes(value));
  await server.clock.advance(5_000);
  expect([ann.host.saving, ann.host.unsavedEdits]).toEqual(["refusing", 30]);
  expect(heard(server, "edit").length, "then one each time").toBeLessThanOrEqual(30 + 5_000 / 200);
  server.room(NOTES).refusing = undefined;
  server.setSaving(NOTES, "saved");
  await server.clock.advance(5_000);
  expect([ann.host.saved, bob.edits.length]).toEqual([true, 30]);
});

test("[SEN4] in a room that may only be read nothing is sent; the application is told once, and edits are kept", async () => {
  const server = serverOn();
  server.rights = { read: true, write: false };
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2]) ann.host.send(bytes(value));
  await server.clock.advance(MINUTE);
  expect(heard(server, "edit")).toEqual([]);
  expect(ann.problems.map(({ kind }) => kind)).toEqual(["read-only"]);
  expect([ann.host.rights, ann.host.unsavedEdits]).toEqual([{ read: true, write: false }, 2]);
  server.rights = { read: true, write: true };
  server.cut();
  await server.clock.advance(MINUTE);
  expect(ann.host.saved).toBe(true);
});

test("[SEN4] a server that refuses the writing meanwhile is believed", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.room(NOTES).refusing = "read-only";
  ann.host.send(bytes(1));
  await server.clock.advance(MINUTE);
  expect([heard(server, "edit").length, ann.problems.map(({ kind }) => kind), ann.host.unsavedEdits]).toEqual([1, ["read-only"], 1]);
});

test("[SEN5] an edit over the limit is told, never sent, and does not stop the others", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.send(new Uint8Array(LIMITS.editBytesMax + 1));
  ann.host.send(bytes(2));
  await server.clock.advance(1_000);
  expect(ann.problems).toMatchObject([{ kind: "edit-too-large", bytesMax: LIMITS.editBytesMax }]);
  expect(ann.edits).toEqual(["1:2 own"]);
});

test("[SEN5] one that the server finds too large is told once, and those behind it go on", async () => {
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

test("[SEN5] one that the server finds too large, though it said otherwise, goes out in pieces, and nothing of it is lost", async () => {
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
  expect([ann.host.saved, heard(server, "join").length]).toEqual([true, 5]);
});

const LOWER = { ...LIMITS, frameBytesMax: 1_000, editBytesMax: 900 };

test("[SEN6] an edit on its way that meets a server which takes only smaller frames goes out in pieces", async () => {
  const server = serverOn();
  const merge = (payloads: readonly Uint8Array[]): Uint8Array => Uint8Array.from(payloads.flatMap((payload) => [...payload]));
  const split = (payload: Uint8Array, bytesMax: number): Uint8Array[] =>
    Array.from({ length: Math.ceil(payload.byteLength / bytesMax) }, (_, index) => payload.slice(index * bytesMax, (index + 1) * bytesMax));
  const ann = new App(server, 1, { format: { merge, split } });
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 }; // As if under way.
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

test("[SEN6] one of which no pieces can be made is told, and what is behind it goes on", async () => {
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

test("[SEN7] what was in the log when the line broke is not sent anew, though a later server takes only smaller frames", async () => {
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
