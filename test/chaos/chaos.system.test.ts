/**
 * A few rounds of chaos on three nats-servers with three replicas of all data; `node dist/test/chaos/main.js` plays
 * hundreds.
 */

import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { closeNats, connectNats } from "../../shared/io/nats.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { opsStepDownSettings } from "../../cli/command-settings.ts";
import { stepDown } from "../../cli/ops-step-down.ts";
import { soakLength } from "../soak.ts";
import { leaderOfLog } from "../system/log-leader.ts";
import { ChaosSystem } from "./chaos-system.ts";
import { runChaos } from "./chaos.ts";

const SEED = Number(process.env["COROOM_TEST_SEED"] ?? 5);

let system: ChaosSystem;
let attempts = 0;

beforeAll(async () => {
  system = await ChaosSystem.start({ syncAlways: true });
});
afterAll(() => system.stop(), 120_000);

const stepDownFrom = (server: string, print: (line: string) => void, waitMsMax = "120000") =>
  stepDown(
    readSettings(opsStepDownSettings, {
      flags: { natsUrl: system.cluster.natsUrl, environment: system.cluster.environment, server, waitMsMax },
      env: {},
    }),
    print,
  );

test("[CHA2] every stream, bucket and object store of the roles has the configured number of replicas", async () => {
  const nats = await connectNats({ servers: system.cluster.natsUrl, name: "test" });
  const copies: Record<string, number> = {};
  for await (const { config } of (await jetstreamManager(nats)).streams.list()) copies[config.name] = config.num_replicas;
  await closeNats(nats);
  expect(Object.keys(copies).length).toBeGreaterThan(7);
  expect(Object.entries(copies).filter(([, count]) => count !== 3)).toEqual([]);
});

test("[CHA3] after a step-down a nats-server leads no stream, and a step-down is refused if the other servers could not continue", async () => {
  const leader = await leaderOfLog(system.cluster);
  const lines: string[] = [];
  await stepDownFrom(`nats-${leader + 1}`, (line) => lines.push(line));
  expect(lines.at(-1)).toBe(`nats-${leader + 1} leads no stream and can be stopped`);
  expect(await leaderOfLog(system.cluster)).not.toBe(leader);

  await expect(stepDownFrom("nats-9", () => {})).rejects.toThrow(/no stream has a replica on "nats-9"/);
  const away = system.cluster.natsServers[leader]!;
  away.kill("SIGKILL");
  await away.exited;
  const other = `nats-${((leader + 1) % 3) + 1}`;
  await expect
    .poll(() => stepDownFrom(other, () => {}, "0").then(() => "done", String), { timeout: 120_000, interval: 500 })
    .toMatch(/no majority of replicas elsewhere \(nats-\d behind or offline\)/);
  await away.restart();
});

test(
  `[CHA4] faults of NATS, processes and connections lose no acknowledged edit, reuse no seq, and all documents converge (seed ${SEED})`,
  { timeout: soakLength(400_000, 7_200_000) },
  async () => {
    attempts += 1; // A second try must not meet the rooms of the first.
    const report = await runChaos(
      system.target,
      {
        seed: SEED,
        rounds: soakLength(3, 200),
        secondsMax: soakLength(20, 3_600),
        rooms: 2,
        roomsNamed: `chaos-${attempts}`,
        everyMs: 150,
        only: "",
      },
      (line) => process.stdout.write(`${line}\n`),
    );
    expect(report.sums.acked).toBe(report.sums.typed);
    expect(report.sums.typed).toBeGreaterThan(soakLength(30, 1_000));
  },
);

test.each(["without DNS", "without memory", "put back from an earlier copy"])(
  "[CHA5] a fault of the machine loses no acknowledged edit, and the rooms become level again: %s",
  { timeout: 400_000 },
  async (only) => {
    const kinds = system.target.faults.map(({ kind }) => kind);
    if (!kinds.some((kind) => kind.includes(only)))
      return void expect(system.names === undefined || process.platform !== "linux").toBe(true);
    const options = { seed: SEED, rounds: 1, secondsMax: 60, rooms: 1, roomsNamed: only.replaceAll(" ", "-"), everyMs: 150, only };
    const { faults, sums } = await runChaos(system.target, options, (line) => process.stdout.write(`${line}\n`));
    expect([...faults.keys()].every((kind) => kind.includes(only))).toBe(true);
    expect(sums.acked).toBe(sums.typed);
  },
);
