/**
 * Releases that cannot work together, and a process with another number of partitions than the log, on real processes: a
 * starting process is refused with an error that states what to do.
 */

import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { BUS_VERSION, ProcessAnnouncement } from "../../shared/bus/bus-version.ts";
import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { joinBus } from "../../shared/io/bus-announcements.ts";
import { checkLogBus } from "../../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { systemClock as clock } from "../../shared/io/system-clock.ts";
import { thisRelease } from "../../shared/io/version.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import { SILENT_LOG as log } from "../../shared/testing/silent-log.ts";
import { startRealNats } from "../contract/real-nats.ts";
import { SystemCluster } from "./cluster.ts";

let cluster: SystemCluster;
let nats: NatsConnection;
const subjects = subjectsOf("test");
const first = subjects.logStream(0);
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1, leaderboards: 1 });
  nats = await connectNats({ servers: cluster.natsUrlAs("operator"), name: "another release" });
});
afterAll(async () => {
  await closeNats(nats);
  await cluster.stop();
});

const NEXT = { version: BUS_VERSION + 1, oldest: BUS_VERSION };
const AFTER_NEXT = { version: BUS_VERSION + 2, oldest: BUS_VERSION + 1 };
const processOf = (bus: ProcessAnnouncement["bus"], id = "other") => ({
  id,
  roles: ["room-server"],
  host: "web-7",
  pid: 4711,
  release: "9.0.0",
  bus,
});

test("[BUSV8] every running process answers a release that it cannot work with, and no process answers the next release", async () => {
  await joinBus(nats, subjects, processOf(NEXT, "next"), { clock, log });
  const answers: ProcessAnnouncement[] = [];
  const subscription = nats.subscribe(subjects.processes, {
    callback: (_, msg) => void answers.push(decodeJson(ProcessAnnouncement, msg.data)!),
  });
  onTestFinished(() => subscription.unsubscribe());
  const refused = joinBus(nats, subjects, processOf(AFTER_NEXT), { clock, log });
  await expect(refused).rejects.toThrow(StartError);
  await expect(refused).rejects.toThrow(
    new RegExp(
      `^release 9\\.0\\.0 \\(bus version ${AFTER_NEXT.version}, .* cannot run beside .*\\. Replace the other processes by a release with bus version ${AFTER_NEXT.oldest} first, or stop them`,
    ),
  );
  const roles = new Set(answers.filter(({ bus }) => bus.version === BUS_VERSION).flatMap(({ roles: named }) => named));
  expect([...roles].sort()).toEqual(["document-service", "gateway", "leaderboard", "placement", "room-server"]);
  expect(cluster.placement.printed()).toMatch(/room-server on web-7, process 4711.*a process that cannot work with this one is starting/);
});

test("[BUSV9] a process beside one of another release that it cannot work with ends at its start, and starts once that one has stopped", async () => {
  const { placement } = cluster;
  const other = { ...processOf(AFTER_NEXT), isStarting: false };
  await placement.stop();
  const answering = nats.subscribe(subjects.processes, {
    callback: (_, msg) => {
      if (decodeJson(ProcessAnnouncement, msg.data)?.isStarting === true) nats.publish(subjects.processes, encodeJson(other));
    },
  });
  await nats.flush();
  await expect(placement.startAgain()).rejects.toThrow(
    new RegExp(
      `coroom: release \\S+ \\(bus version ${BUS_VERSION}\\b.*cannot run beside room-server on web-7, process 4711, of release 9\\.0\\.0 .*Start a release with bus version ${AFTER_NEXT.oldest} or later here, or stop the other processes first`,
    ),
  );
  answering.unsubscribe();
  await nats.flush();
  await placement.startAgain();
});

test("[BUSV10] a log of a release that skipped this one refuses every role, and a log of the next release refuses none", async () => {
  const all = await connectNats({ servers: cluster.natsUrl, name: "log" });
  onTestFinished(() => closeNats(all));
  const { streams } = await jetstreamManager(all);
  const { metadata } = (await streams.info(first)).config;
  const writtenBy = (bus: object) =>
    streams.update(first, { metadata: { ...metadata, "coroom.bus": JSON.stringify({ ...bus, release: "9.0.0" }) } });
  const { placement, documentService, roomServers, leaderboards, gateways } = cluster;
  const processes = [placement, documentService, roomServers[0]!, leaderboards[0]!, gateways[0]!.process];
  for (const process of processes.toReversed()) await process.stop();
  await writtenBy(AFTER_NEXT);
  for (const process of processes)
    await expect(process.startAgain(), process.role).rejects.toThrow(
      /coroom: release \S+ \(bus version .* cannot use the data of this environment, which was written by release 9\.0\.0 \(/,
    );
  await writtenBy(NEXT);
  for (const process of processes) await process.startAgain();
  expect((await streams.info(first)).config.metadata?.["coroom.bus"], "a rollback lowers nothing").toContain(`"version":${NEXT.version}`);
});

test("[BUSV11] of two processes that start at once and cannot work together, at least one is refused", async () => {
  const other = await connectNats({ servers: cluster.natsUrlAs("operator"), name: "a third release" });
  onTestFinished(() => closeNats(other));
  const elsewhere = subjectsOf("test.apart");
  const outcomes = await Promise.allSettled([
    joinBus(nats, elsewhere, processOf(NEXT, "a"), { clock, log }),
    joinBus(other, elsewhere, processOf({ version: NEXT.oldest - 1, oldest: 1 }, "b"), { clock, log }),
  ]);
  expect(outcomes.map(({ status }) => status)).toContain("rejected");
});

test("[BUSV12] a process with a user of NATS from an earlier release starts, and reports that it cannot check the versions", async () => {
  const reported: string[] = [];
  const users = [
    { user: "all", password: "p" },
    { user: "earlier", password: "p", permissions: { publish: ["$JS.API.INFO", "$JS.API.STREAM.NAMES"], subscribe: ["_INBOX.>"] } },
  ];
  const server = await startRealNats({ users });
  onTestFinished(() => server.stop());
  const earlier = await connectNats({ servers: server.url.replace("nats://", "nats://earlier:p@"), name: "earlier" });
  expect(await checkLogBus(earlier, subjects, thisRelease())).toBe(false);
  await joinBus(earlier, subjects, processOf(NEXT), { clock, log: { ...log, warn: (_, sentence) => void reported.push(sentence) } });
  expect(reported).toEqual([expect.stringMatching(/cannot check the bus versions of others.*coroom nats-users/)]);
  await closeNats(earlier);
});

test("[BUSV13] a process with another number of partitions than the log is refused in every role; before there is a log, placement starts", async () => {
  const all = await connectNats({ servers: cluster.natsUrl, name: "log" });
  onTestFinished(() => closeNats(all));
  const { streams } = await jetstreamManager(all);
  const { placement, documentService, roomServers, leaderboards, gateways } = cluster;
  const processes = [placement, documentService, roomServers[0]!, leaderboards[0]!, gateways[0]!.process];
  for (const process of processes.toReversed()) await process.stop();
  const refused: string[] = [];
  for (const process of processes) {
    const outcome = await process.startAgain({ LOG_PARTITIONS: "3" }).catch((error: unknown) => String(error));
    if (/coroom: the log of this environment has 1 partitions .*Set COROOM_LOG_PARTITIONS=1 for every role/.test(outcome ?? ""))
      refused.push(process.role);
    await process.stop();
  }
  expect(refused).toEqual(processes.map(({ role }) => role));
  await streams.delete(first);
  for (const process of processes) await process.startAgain({ LOG_PARTITIONS: "1" });
  expect((await streams.info(first)).config.metadata?.["coroom.partitions"]).toBe("1");
});
