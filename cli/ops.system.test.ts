/** Operations events on a real nats-server: stored, bounded, replayed and streamed. */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/settings/settings.ts";
import type { RoomKey } from "../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations } from "../shared/io/nats-operations.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { describeRoom, watchEvents } from "./ops.ts";
import { opsRoomSettings, opsWatchSettings } from "./command-settings.ts";

let server: RealNats;
let nats: NatsConnection;
beforeAll(async () => {
  server = await startRealNats();
  nats = await connectNats({ servers: server.url, name: "test" });
});
afterAll(async () => {
  await closeNats(nats);
  await server.stop();
});

async function operationsIn(environment: string, { last = "20", opsEventsMax = "10000" }: { last?: string; opsEventsMax?: string } = {}) {
  const config = readSettings(opsWatchSettings, { flags: { environment, natsUrl: server.url, last }, env: {} });
  const subjects = subjectsOf(environment);
  await ensureOperationsStream(nats, subjects, readSettings(sharedSettings, { flags: { opsEventsMax }, env: {} }));
  const counted: string[] = [];
  const operations = natsOperations(nats, subjects, "rs-1", {
    clock: systemClock,
    log: SILENT_LOG,
    count: (kind) => void counted.push(kind),
  });
  const claim = (room: string): void => operations.report({ kind: "room_claimed", room: `acme.${room}` as RoomKey, epoch: 1 });
  const kept = async () => (await (await jetstreamManager(nats)).streams.info(subjects.operationsStream)).state.messages;
  return { config, subjects, claim, kept, counted };
}

test("[OPS1] a watcher receives the newest stored events, then each new event, once and in order", async () => {
  const { config, claim, kept, counted } = await operationsIn("ops1", { last: "2" });
  for (const room of ["a", "b", "c"]) claim(room);
  await until(async () => (await kept()) === 3, "events in the stream");
  const lines: string[] = [];
  const watch = await watchEvents(config, (line) => lines.push(line));
  await until(() => lines.length === 2, "the newest two");
  claim("d");
  await until(() => lines.length === 3, "a new one");
  await watch.stop();
  expect(lines.map((line) => line.slice(line.indexOf(" ") + 1))).toEqual(
    ["b", "c", "d"].map((room) => `room_claimed room=acme.${room} epoch=1 by=rs-1`),
  );
  expect(counted).toEqual(Array.from({ length: 4 }, () => "room_claimed"));
});

test("[OPS2] the operations stream keeps at most the maximum number of events, also after the maximum was lowered", async () => {
  const { claim, kept } = await operationsIn("ops2", { opsEventsMax: "5" });
  for (let room = 0; room < 12; room++) claim(`room${room}`);
  await nats.flush();
  await until(async () => (await kept()) === 5, "five events");
  const again = await operationsIn("ops2", { opsEventsMax: "2" });
  await until(async () => (await again.kept()) === 2, "two events");
});

test("[OPS3] a watcher without stored events receives the first new event", async () => {
  const { config, claim } = await operationsIn("ops3");
  const lines: string[] = [];
  const watch = await watchEvents(config, (line) => lines.push(line));
  claim("first");
  await until(() => lines.length === 1, "the first");
  await watch.stop();
});

test("[OPS6] a watcher continues after an outage of NATS, with each event once", async () => {
  const own = await startRealNats();
  onTestFinished(() => own.stop());
  const other = await connectNats({ servers: own.url, name: "test" });
  onTestFinished(() => closeNats(other));
  const subjects = subjectsOf("ops6");
  await ensureOperationsStream(other, subjects, readSettings(sharedSettings, { flags: {}, env: {} }));
  const operations = natsOperations(other, subjects, "rs-1", { clock: systemClock, log: SILENT_LOG, count: () => {} });
  const lines: string[] = [];
  const flags = { environment: "ops6", natsUrl: own.url };
  const watch = await watchEvents(readSettings(opsWatchSettings, { flags, env: {} }), (line) => lines.push(line.split(" ")[2]!));
  operations.report({ kind: "nats_lost", downMs: 1 });
  operations.report({ kind: "nats_lost", downMs: 2 });
  await until(() => lines.length === 2, "the events before");
  await own.crash(() => sleep(8_000)); // Longer than any question of the watcher waits.
  operations.report({ kind: "nats_lost", downMs: 3 });
  await until(() => lines.length === 3, "the event after the outage");
  await watch.stop();
  expect(lines).toEqual(["downMs=1", "downMs=2", "downMs=3"]);
});

test("[OPS4] the error names a room without an owner, and an invalid room id", async () => {
  const about = (room: string) =>
    describeRoom(readSettings(opsRoomSettings, { flags: { environment: "ops4", natsUrl: server.url, room }, env: {} }), () => {});
  await expect(about("notes")).rejects.toThrow(/no room server owns "notes"/);
  await expect(about("..")).rejects.toThrow(/invalid room id/);
});

test("[OPS5] a watcher does not change the limits of the stream and creates no stream", async () => {
  const { config, subjects } = await operationsIn("ops5", { opsEventsMax: "5" });
  await (await watchEvents(config, () => {})).stop();
  const { streams } = await jetstreamManager(nats);
  expect((await streams.info(subjects.operationsStream)).config.max_msgs).toBe(5);

  const nowhere = readSettings(opsWatchSettings, { flags: { environment: "ops5-none", natsUrl: server.url }, env: {} });
  await expect(watchEvents(nowhere, () => {})).rejects.toThrow(/the environment "ops5-none" has no events yet/);
  await expect(streams.info(subjectsOf("ops5-none").operationsStream)).rejects.toThrow(/stream not found/);
});
