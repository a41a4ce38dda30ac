/** The events of a gateway's consoles during an outage of a real nats-server. */

import { jetstreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test } from "vitest";

import { subjectsOf } from "../../../shared/bus/subjects.ts";
import { closeNats, connectNats } from "../../../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations } from "../../../shared/io/nats-operations.ts";
import { systemClock } from "../../../shared/io/system-clock.ts";
import { sharedSettings } from "../../../shared/settings/common-settings.ts";
import { readSettings } from "../../../shared/settings/settings.ts";
import type { Log } from "../../../shared/process/log.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../../shared/testing/silent-log.ts";
import { startRealNats, until } from "../../../test/contract/real-nats.ts";
import { natsEvents } from "./nats-events.ts";

async function start({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
  const server = await startRealNats();
  onTestFinished(() => server.stop());
  const nats = await connectNats({ servers: server.url, name: "test" });
  onTestFinished(() => closeNats(nats));
  const subjects = subjectsOf("events");
  const config = readSettings(sharedSettings, { flags: {}, env: {} });
  await ensureOperationsStream(nats, subjects, config);
  const operations = natsOperations(nats, subjects, "gw-1", { clock, log: SILENT_LOG, count: () => {} });
  return { server, nats, subjects, operations, events: natsEvents(nats, subjects, config, { clock, log }) };
}

test("[EVK5] a console keeps its events while NATS does not answer, and receives new ones afterwards", async () => {
  let failures = 0;
  const { server, operations, events } = await start({ clock: systemClock, log: { ...SILENT_LOG, warn: () => void failures++ } });
  const downs = async () =>
    (await events.read()).since(0, 10, () => true).events.map(({ event }) => event.kind === "nats_lost" && event.downMs);
  operations.report({ kind: "nats_lost", downMs: 1 });
  await until(async () => (await downs()).length === 1, "the event before the outage");

  server.signal("SIGSTOP");
  const kept = await until(async () => {
    const seen = await downs();
    return failures === 2 && seen;
  }, "two readers failed");
  expect(kept).toEqual([1]);
  server.signal("SIGCONT");
  operations.report({ kind: "nats_lost", downMs: 2 });
  await until(async () => (await downs()).length === 2, "the event after the outage");
  expect(await downs()).toEqual([1, 2]);
});

test("[EVK7] a loss that two gateways report is stored once, and the next loss of the same process as well", async () => {
  const { nats, subjects, operations, events } = await start({ clock: systemClock, log: SILENT_LOG });
  const others = natsOperations(nats, subjects, "gw-2", { clock: systemClock, log: SILENT_LOG, count: () => {} });
  const loss = { kind: "process_lost", state: "lost", role: "placement", instance: "placement-1", running: 0, forMs: 20_000 } as const;
  for (const { report, settled } of [operations, others]) {
    report({ ...loss, count: 3 });
    report({ ...loss, count: 9 });
    await settled();
  }
  const stored = (await events.read()).since(0, 10, () => true).events;
  expect(stored.map(({ event }) => event.kind === "process_lost" && event.count).toSorted()).toEqual([3, 9]);
});

test("[EVK6] a console shows no events of a stream that has none any more", async () => {
  const clock = new FakeClock();
  const { nats, subjects, operations, events } = await start({ clock, log: SILENT_LOG });
  const seen = async () => (await events.read()).since(0, 10, () => true).events.length;
  operations.report({ kind: "nats_lost", downMs: 1 });
  await operations.settled();
  expect(await seen()).toBe(1);
  const { streams } = await jetstreamManager(nats);
  await streams.purge(subjects.operationsStream);
  await clock.advance(60_000); // Nobody asks for so long that the reader ends.
  await until(async () => (await seen()) === 0, "the next reader");
});
