/** A room on a model server: what an application sees, and what the server hears. */

import { expect, test } from "vitest";

import type { ClientId, RoomId } from "../shared/ids.ts";
import type { ClientFrame } from "../shared/wire/frames.ts";
import { ConnectionHost } from "./connection-host.ts";
import type { Problem, Refusal } from "./problems.ts";
import type { RoomHostOptions } from "./room-events.ts";
import { RoomHost } from "./room-host.ts";
import { FakeClock } from "./testing/fake-clock.ts";
import { LIMITS, ModelServer } from "./testing/model-server.ts";

const NOTES = "notes" as RoomId;
const MINUTE = 60_000;
const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

function serverOn(clock = new FakeClock()): ModelServer {
  const server = new ModelServer(clock, { faults: { delayMsMax: 5 } });
  server.limits = { ...LIMITS, editBurst: 100, editsPerSecond: 1_000 };
  return server;
}

/** An application in a room, and everything it was told. */
class App {
  readonly host: RoomHost;
  readonly edits: string[] = [];
  readonly tentative: string[] = [];
  readonly statuses: string[] = [];
  readonly problems: Problem[] = [];
  readonly refusals: Refusal[] = [];
  readonly facts: string[] = [];

  constructor(server: ModelServer, seed: number, options: Partial<RoomHostOptions> = {}) {
    this.host = new RoomHost({ url: "ws://h", token: () => "t", room: NOTES, connect: false, ...options } as RoomHostOptions, server.world(seed));
    this.host.on("edit", ({ seq, payload, own }) => this.edits.push(`${seq}:${payload}${own ? " own" : ""}`));
    this.host.on("tentative", (edits) => this.tentative.push(...edits.map(({ payload }) => `${payload}`)));
    this.host.on("status", ({ status }) => this.statuses.push(status));
    this.host.on("error", (problem) => this.problems.push(problem));
    this.host.on("refused", (refusal) => this.refusals.push(refusal));
    this.host.on("synced", (synced) => this.facts.push(synced ? "synced" : "not synced"));
    this.host.on("saved", (saved) => this.facts.push(saved ? "saved" : "unsaved"));
    this.host.on("saving", (saving) => this.facts.push(`log ${saving}`));
    this.host.connect();
  }
}

const heard = <Type extends ClientFrame["type"]>(server: ModelServer, type: Type): Extract<ClientFrame, { type: Type }>[] => server.heard.filter((frame): frame is Extract<ClientFrame, { type: Type }> => frame.type === type);

test("[ROO1] an edit is acknowledged to its author and delivered to everyone, with its seq", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  expect([ann.host.saved, ann.host.unsavedEdits]).toEqual([false, 1]);
  await server.clock.advance(100);
  expect(ann.edits).toEqual(["1:1 own"]);
  expect(bob.edits).toEqual(["1:1"]);
  expect(ann.statuses).toEqual(["connecting", "connected"]);
  expect(ann.facts).toEqual(["synced", "unsaved", "saved"]);
  expect([ann.host.seq, bob.host.seq]).toEqual([1, 1]);
});

test("[ROO2] edits made while away are kept, and sent when the room is joined again", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  ann.host.disconnect();
  expect(ann.host.status).toBe("disconnected");
  ann.host.send(bytes(1));
  await server.clock.advance(MINUTE);
  expect([ann.host.saved, bob.edits]).toEqual([false, []]);
  ann.host.connect();
  await server.clock.advance(1_000);
  expect([ann.host.saved, bob.edits]).toEqual([true, ["1:1"]]);
});

test("[ROO3] after a reconnect it joins with its position and its client key, and gets only what it missed", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  bob.host.send(bytes(1));
  await server.clock.advance(100);
  ann.host.disconnect();
  bob.host.send(bytes(2));
  await server.clock.advance(100);
  ann.host.connect();
  await server.clock.advance(1_000);
  expect(ann.edits).toEqual(["1:1", "2:2"]);
  const joins = heard(server, "join").filter(({ clientKey }) => clientKey.startsWith("key-1"));
  expect(joins.map(({ position }) => position)).toEqual([{ epoch: 0, seq: 0 }, { epoch: 1, seq: 1 }]);
  expect(new Set(joins.map(({ clientKey }) => clientKey)).size).toBe(1);
});

test("[ROO4] an edit whose acknowledgement was lost is not ordered twice", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.cut();
  server.commit(NOTES);
  server.commits = true;
  await server.clock.advance(2_000);
  expect(server.room(NOTES).log).toHaveLength(1);
  expect([ann.host.saved, ann.edits]).toEqual([true, ["1:1 own"]]);
});

test("[ROO5] edits sent to an owner that died are sent again to the next", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(100);
  server.room(NOTES).failOver();
  server.commits = true;
  ann.host.send(bytes(4));
  await server.clock.advance(1_000);
  expect(ann.edits).toEqual(["1:1 own", "2:2 own", "3:3 own", "4:4 own"]);
});

test("[ROO6] synced once everything up to the head is delivered, and not while away", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (let value = 0; value < 35; value++) ann.host.send(bytes(value));
  await server.clock.advance(5_000);
  const bob = new App(server, 2);
  bob.host.on("synced", (synced) => bob.facts.push(`at ${bob.edits.length}`, String(synced)));
  await server.clock.advance(1_000);
  expect(bob.facts).toEqual(["synced", "at 35", "true"]);
  server.reachable = false;
  server.cut();
  await server.clock.advance(10);
  expect(bob.host.synced).toBe(false);
});

test("[ROO7] a position that the log no longer reaches is left behind for the snapshot's; waiting edits survive", async () => {
  const server = serverOn();
  server.snapshotOf = (edits) => bytes(...edits.map(({ payload }) => payload[0]!));
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).trimmedThrough = 2;

  const bob = new App(server, 2);
  const snapshots: string[] = [];
  bob.host.on("snapshot", ({ position, payload }) => snapshots.push(`${position.seq}: ${payload}`));
  bob.host.send(bytes(9));
  await server.clock.advance(1_000);
  expect(snapshots).toEqual(["2: 1,2"]);
  expect(bob.edits).toEqual(["3:3", "4:9 own"]);
  expect([bob.host.synced, bob.host.saved]).toEqual([true, true]);
});

test("[ROO7] while the snapshot cannot be had, edits are taken all the same, and the application is told", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).trimmedThrough = 2;
  server.snapshotsAvailable = false;
  const bob = new App(server, 2);
  bob.host.send(bytes(9));
  await server.clock.advance(3_000);
  expect(ann.edits.at(-1)).toBe("4:9");
  expect(bob.problems[0]?.kind).toBe("snapshot-unavailable");
  expect(bob.host.synced).toBe(false);
  server.snapshotsAvailable = true;
  await server.clock.advance(30_000);
  expect([bob.host.synced, bob.host.saved, bob.host.seq]).toEqual([true, true, 4]);
});

test("[ROO8] a log that lost its end: the room begins anew, and the application is told before", async () => {
  const server = serverOn();
  server.snapshotOf = () => bytes(1);
  const ann = new App(server, 1);
  const told: string[] = [];
  ann.host.on("rolled-back", () => told.push("rolled back"));
  ann.host.on("snapshot", () => told.push("snapshot"));
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).rollBackTo(1);
  server.room(NOTES).trimmedThrough = 1;
  server.cut();
  await server.clock.advance(5_000);
  expect(told).toEqual(["rolled back", "snapshot"]);
  expect([ann.host.seq, ann.host.synced]).toEqual([1, true]);
  ann.host.send(bytes(4));
  await server.clock.advance(1_000);
  expect([ann.host.saved, server.room(NOTES).log.length]).toEqual([true, 2]);
});

test("[ROO9] a join that is refused for now is tried again, one refused for good is told", async () => {
  const server = serverOn();
  server.refuseJoins = { reason: "room-full", retryAfterMs: 500 };
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.refusals]).toEqual(["connecting", []]);
  server.refuseJoins = undefined;
  await server.clock.advance(2_000);
  expect(ann.host.status).toBe("connected");

  server.refuseJoins = { reason: "not-allowed", retryAfterMs: 0 };
  const bob = new App(server, 2);
  await server.clock.advance(5_000);
  expect(bob.host.status).toBe("stopped");
  expect(bob.refusals).toEqual([{ kind: "room-refused", reason: "not-allowed", message: "not now" }]);
  expect(heard(server, "join").filter(({ clientKey }) => clientKey.startsWith("key-2"))).toHaveLength(1);
});

test("[ROO10] a token that the server refuses ends it: no endless loop", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.cut(4101);
  await server.clock.advance(10 * MINUTE);
  expect(ann.host.status).toBe("stopped");
  expect(ann.refusals.map(({ kind }) => kind)).toEqual(["connection-refused"]);
  expect(heard(server, "hello")).toHaveLength(1);
});

test("[ROO11] after a silence beyond the dedupe window, sent edits go out under the old key and the rest under a new one", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  ann.host.disconnect();
  ann.host.send(bytes(2));
  await server.clock.advance(6 * MINUTE);
  server.room(NOTES).failOver();
  server.commits = true;
  ann.host.connect();
  await server.clock.advance(2_000);
  const { log } = server.room(NOTES);
  expect(log.map(({ payload }) => `${payload}`)).toEqual(["1", "2"]);
  expect(log.map(({ counter }) => counter)).toEqual([1, 1]);
  expect(log[0]!.client).not.toBe(log[1]!.client);
  expect([ann.host.saved, ann.edits]).toEqual([true, ["1:1 own", "2:2 own"]]);
});

test("[ROO12] rights taken away end it", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.send({ type: "left", channel: 1, reason: "rights-revoked" });
  await server.clock.advance(100);
  expect([ann.host.status, ann.refusals[0]?.kind]).toEqual(["stopped", "room-refused"]);
});

test("[ROO13] what a listener does waits its turn: its edits go out behind those before them", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  bob.host.on("edit", ({ own, payload }) => {
    if (!own) bob.host.send(bytes(payload[0]! + 100));
  });
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  expect(ann.edits.map((edit) => edit.split(":")[1])).toEqual(["1 own", "2 own", "3 own", "101", "102", "103"]);
});

test("[ROO14] destroyed, it says nothing more and leaves nothing running", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  ann.host.destroy();
  const told = ann.facts.length;
  await server.clock.advance(MINUTE);
  expect([server.clock.pending, server.lines.size, ann.facts.length]).toEqual([0, 0, told]);
});

test("[FEE1] another client's edits acknowledge nothing, whatever their counters", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 };
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.faults = { ...server.faults, editLost: 0 };
  bob.host.send(bytes(2));
  await server.clock.advance(100);
  expect(ann.edits).toEqual(["1:2"]);
  expect(ann.host.unsavedEdits).toBe(1);
  await server.clock.advance(MINUTE);
  expect(ann.host.saved, "nobody answered, so it was sent again").toBe(true);
});

test("[FEE2] while the log is slow edits are shown as tentative, acks wait, and all is confirmed in the end", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "saving");
  for (let value = 1; value <= 90; value++) ann.host.send(bytes(value));
  await server.clock.advance(5_000);
  expect(bob.tentative).toHaveLength(90);
  expect([bob.edits.length, ann.host.unsavedEdits, ann.host.saving, ann.tentative.length]).toEqual([0, 90, "saving", 0]);
  server.setSaving(NOTES, "saved");
  await server.clock.advance(1_000);
  expect([bob.edits.length, ann.host.saved, ann.host.saving]).toEqual([90, true, "saved"]);
  await server.clock.advance(MINUTE);
  expect(heard(server, "resubmit")).toEqual([]);
});

test("[FEE3] tentative edits whose author and owner are gone are sent in by whoever saw them", async () => {
  const server = serverOn();
  const [ann, bob, cid] = [new App(server, 1), new App(server, 2), new App(server, 3)];
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "saving");
  for (const value of [1, 2]) ann.host.send(bytes(value));
  await server.clock.advance(100);
  ann.host.destroy();
  server.room(NOTES).failOver();
  server.setSaving(NOTES, "saved");
  await server.clock.advance(30_000);
  expect(server.room(NOTES).log.map(({ payload }) => `${payload}`)).toEqual(["1", "2"]);
  expect([bob.edits, cid.edits]).toEqual([["1:1", "2:2"], ["1:1", "2:2"]]);
});

test("[FEE4] a hole in what comes is asked for, and filled before anything behind it is delivered", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.faults = { ...server.faults, committedFrameLost: 0 };
  ann.host.send(bytes(2));
  await server.clock.advance(1_000);
  expect(bob.edits).toEqual(["1:1", "2:2"]);
  expect(heard(server, "replay-request").map(({ after, through }) => [after, through])).toEqual([[0, 1]]);
});

test("[FEE5] where no replay fills a hole the room is joined anew, and what was typed meanwhile goes out", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.faults = { ...server.faults, committedFrameLost: 0 };
  server.answersReplays = false;
  ann.host.send(bytes(2));
  await server.clock.advance(MINUTE);
  bob.host.send(bytes(3));
  await server.clock.advance(MINUTE);
  expect(heard(server, "replay-request").length).toBeGreaterThan(2);
  expect([bob.edits, bob.host.saved, bob.host.synced]).toEqual([["1:1", "2:2", "3:3 own"], true, true]);
});

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
  const split = (payload: Uint8Array, bytesMax: number): Uint8Array[] => Array.from({ length: Math.ceil(payload.byteLength / bytesMax) }, (_, index) => payload.slice(index * bytesMax, (index + 1) * bytesMax));
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

test("[COH1] several rooms share one connection, its pace too; a room left is left alone", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = { connection, url: undefined, token: undefined } as unknown as Partial<RoomHostOptions>;
  const [notes, tasks] = [new App(server, 1, shared), new App(server, 2, { ...shared, room: "tasks" })];
  await server.clock.advance(1_000);
  expect(server.lines.size).toBe(1);
  for (let value = 0; value < 40; value++) {
    notes.host.send(bytes(value));
    tasks.host.send(bytes(value));
  }
  await server.clock.advance(50);
  expect(heard(server, "edit").length).toBeLessThanOrEqual(LIMITS.editBurst);
  await server.clock.advance(30_000);
  expect([notes.host.saved, tasks.host.saved]).toEqual([true, true]);
  notes.host.disconnect();
  tasks.host.send(bytes(7));
  await server.clock.advance(1_000);
  expect([notes.host.status, tasks.host.status, tasks.host.saved, server.lines.size]).toEqual(["disconnected", "connected", true, 1]);
});

test("[COH2] a room is on a connection once", () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  new RoomHost({ connection, room: NOTES }, server.world(1));
  expect(() => new RoomHost({ connection, room: NOTES }, server.world(2))).toThrow("one RoomConnection or provider a room");
});

test("[COH3] frames that only a client may send, and acks of a client unknown, disturb nothing", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.send({ type: "ack", channel: 9, epoch: 1 as never, counter: 1, seq: 1 as never, count: 1 });
  server.send({ type: "committed", channel: 1, edits: { epoch: 1 as never, firstSeq: 1 as never, edits: [{ client: "someone_else____" as ClientId, counter: 5, parentSeq: 0 as never, payload: bytes(8) }] } });
  await server.clock.advance(100);
  expect([ann.edits, ann.host.status]).toEqual([["1:8"], "connected"]);
});

test("[COH4] when the gateway goes away the next line opens before this one is given up, and no edit is lost or doubled", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  const [old] = server.lines;
  let typed = 0;
  const type = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      ann.host.send(bytes(++typed % 256));
      await server.clock.advance(5);
    }
  };
  await type(100);
  server.send({ type: "going-away", reconnectAfterMs: 500 });
  await type(450);
  expect(server.lines.has(old!), "nobody moves before the time").toBe(true);
  await type(500);
  await server.clock.advance(1_000);
  expect([server.lines.has(old!), server.lines.size]).toEqual([false, 2]);
  expect(ann.edits).toEqual(Array.from({ length: typed }, (_, index) => `${index + 1}:${(index + 1) % 256} own`));
  expect(bob.edits).toHaveLength(typed);
  expect([...ann.problems, ...ann.refusals, ...bob.problems, ...bob.refusals]).toEqual([]);
  expect(ann.statuses, "away for one answer to JOIN only").toEqual(["connecting", "connected", "connecting", "connected"]);
});

test("[COH5] as long as there is nowhere to move to, the line that goes away serves on, and its end is as any other", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.send({ type: "going-away", reconnectAfterMs: 0 });
  for (let second = 1; second <= 20; second++) {
    ann.host.send(bytes(second));
    await server.clock.advance(1_000);
    expect(ann.host.saved).toBe(true);
  }
  expect([ann.statuses, ann.problems]).toEqual([["connecting", "connected"], []]);
  server.cut(4001);
  server.reachable = true;
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.edits.length, server.lines.size]).toEqual(["connected", 20, 1]);
  expect(ann.statuses).toEqual(["connecting", "connected", "waiting", "connecting", "connected"]);
});

test("[COH7] while the gateway has lost its backbone it is tried elsewhere; when it is found again the one line serves on", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  const [line] = server.lines;
  server.reachable = false; // The other gateways have lost it too.
  server.send({ type: "degraded", backbone: "lost", reconnectAfterMs: 500 });
  await server.clock.advance(5_000);
  expect([ann.host.status, server.lines.has(line!)]).toEqual(["degraded", true]);
  ann.host.send(bytes(1));
  server.send({ type: "degraded", backbone: "found", reconnectAfterMs: 0 });
  server.reachable = true;
  await server.clock.advance(30_000);
  expect([ann.host.status, ann.host.saved, [...server.lines]]).toEqual(["connected", true, [line]]);

  server.send({ type: "degraded", backbone: "lost", reconnectAfterMs: 500 });
  await server.clock.advance(2_000);
  expect([ann.host.status, server.lines.has(line!), server.lines.size]).toEqual(["connected", false, 1]); // Moved.
  expect(ann.problems).toEqual([]);
});

test("[ROO15] a room whose rights changed is joined again on the same line, with them", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.rights = { read: true, write: false };
  server.send({ type: "left", channel: 1, reason: "rights-changed" });
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.host.rights.write, server.lines.size]).toEqual(["connected", false, 1]);
  ann.host.send(bytes(1));
  expect(ann.problems).toMatchObject([{ kind: "read-only" }]);
  server.rights = { read: true, write: true };
  server.send({ type: "left", channel: 1, reason: "rights-changed" });
  await server.clock.advance(1_000);
  expect([ann.edits, ann.host.saved]).toEqual([["1:1 own"], true]);
  expect(heard(server, "hello")).toHaveLength(1);
});

test("[COH6] a token is renewed on the line in use", async () => {
  const server = serverOn();
  server.tokenExpiresInMs = 10_000;
  let tokens = 0;
  const ann = new App(server, 1, { token: () => `token ${++tokens}` } as Partial<RoomHostOptions>);
  await server.clock.advance(30_000);
  expect(heard(server, "renew").map(({ token }) => token)).toEqual(["token 2", "token 3", "token 4"]);
  expect([heard(server, "hello").length, ann.statuses]).toEqual([1, ["connecting", "connected"]]);
});
