/** The command `coroom split-log` beside running processes, and without the permissions that it needs. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { joinBus } from "../../shared/io/bus-announcements.ts";
import { ensureLogStreams, statedPartitions, statePartitions } from "../../shared/io/log-stream.ts";
import { closeNats, connectNats } from "../../shared/io/nats.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { ownAnnouncement } from "../bus-process.ts";
import { splitLogSettings } from "../command-settings.ts";
import { natsUsers } from "../local-engines.ts";
import { refuseRunningProcesses } from "../running-processes.ts";
import { withUser } from "../local-addresses.ts";
import { startLogSystem } from "./testing/log-system.ts";
import { splitLog } from "./split-log.ts";

let server: RealNats;
beforeAll(async () => {
  server = await startRealNats();
});
afterAll(() => server.stop());

/** Runs the command. Returns what it printed. */
async function command(environment: string, partitions: number, natsUrl = server.url): Promise<string[]> {
  const lines: string[] = [];
  const flags = { environment, natsUrl, logPartitions: String(partitions) };
  await splitLog(readSettings(splitLogSettings, { flags, env: {} }), (line) => void lines.push(line));
  return lines;
}

test("[SPLS6] while a process runs the command names it and changes nothing, and a statement that a kill left is withdrawn", async () => {
  const system = await startLogSystem(server.url, "spls6", 1);
  const { manager, subjects } = system;
  const running = await connectNats({ servers: server.url, name: "running" });
  await joinBus(running, subjects, ownAnnouncement(["room-server"]), { clock: systemClock, log: SILENT_LOG });
  await expect(command("spls6", 3)).rejects.toThrow(
    new RegExp(`split-log needs a stopped system, and these run: room-server on .*, process ${process.pid}. Stop all processes`),
  );
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "settled", count: 1 });
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  expect(await command("spls6", 1), "without a stop").toEqual(["the split is cancelled. The log has 1 partitions"]);
  await closeNats(running);
  expect(await command("spls6", 3)).toContain("Set COROOM_LOG_PARTITIONS=3 for every role, and start the system");
  expect(await command("spls6", 3)).toEqual(["the log has 3 partitions"]);
});

test("[SPLS7] a process of a release that answers nothing is noticed by its heartbeats", async () => {
  const { nats, manager, subjects } = await startLogSystem(server.url, "spls7", 1);
  const beating = setInterval(() => nats.publish(subjects.vitals, "{}"), 1_000);
  onTestFinished(() => clearInterval(beating));
  await expect(command("spls7", 3)).rejects.toThrow(/these run: a process that sends to spls7\.vitals\. Stop/);
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "settled", count: 1 });
});

test("[SPLS8] without users of NATS for the new partitions, or beside streams of them, the command changes nothing", async () => {
  const passwordOf = (role: string): string => `the password of ${role}`;
  const guarded = await startRealNats({ users: natsUsers({ environment: "spls8", logPartitions: 1 }, passwordOf) });
  onTestFinished(() => guarded.stop());
  const as = (role: "operator" | "room-server"): string => withUser(guarded.url, role, passwordOf(role));
  const maker = await connectNats({ servers: as("room-server"), name: "test", inboxPrefix: "spls8.inbox.room-server" });
  onTestFinished(() => closeNats(maker));
  await ensureLogStreams(maker, subjectsOf("spls8"), { partitions: 1, replicas: 1 });
  await expect(refuseRunningProcesses(maker, subjectsOf("spls8"), "restore")).rejects.toThrow(
    /cannot find running processes: .*spls8\..*Set COROOM_NATS_URL to the user of the operator/,
  );
  await expect(command("spls8", 3, as("operator"))).rejects.toThrow(/may not use spls8_log_2\. .*coroom nats-users --log-partitions 3/);

  const { manager, subjects } = await startLogSystem(server.url, "spls8", 1);
  await manager.streams.add({ name: subjects.logStream(1), subjects: [subjects.logOfPartition(1)] });
  await expect(command("spls8", 3)).rejects.toThrow(/streams of further ones, such as spls8_log_1\. Remove them/);
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "settled", count: 1 });
});
