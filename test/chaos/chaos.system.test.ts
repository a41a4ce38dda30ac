/** A few rounds of chaos on three nats-servers with three copies of everything; `node dist/test/chaos/main.js` plays hundreds. */

import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { opsStepDownSettings } from "../../cli/ops-settings.ts";
import { stepDown } from "../../cli/ops-step-down.ts";
import { readSettings } from "../../shared/config.ts";
import { closeNats, connectNats } from "../../shared/io/nats.ts";
import { leaderOfLog } from "../system/log-leader.ts";
import { runChaos } from "./chaos.ts";
import { ChaosSystem } from "./chaos-system.ts";

const SEED = Number(process.env["COROOM_TEST_SEED"] ?? 5);

let system: ChaosSystem;
beforeAll(async () => {
  system = await ChaosSystem.start();
});
afterAll(() => system.stop(), 120_000);

const stepDownFrom = (server: string, say: (line: string) => void, waitMsMax = "120000") =>
  stepDown(
    readSettings(opsStepDownSettings, {
      flags: { natsUrl: system.cluster.natsUrl, environment: system.cluster.environment, server, waitMsMax },
      env: {},
    }),
    say,
  );

test("[CHA2] every stream, bucket and object store that the roles make has the copies that are asked for", async () => {
  const nats = await connectNats({ servers: system.cluster.natsUrl, name: "test" });
  const copies: Record<string, number> = {};
  for await (const { config } of (await jetstreamManager(nats)).streams.list()) copies[config.name] = config.num_replicas;
  await closeNats(nats);
  expect(Object.keys(copies).length).toBeGreaterThan(7);
  expect(Object.entries(copies).filter(([, count]) => count !== 3)).toEqual([]);
});

test("[CHA3] a nats-server that is asked to step down leads nothing, and is refused where others cannot go on without it", async () => {
  const leader = await leaderOfLog(system.cluster);
  const lines: string[] = [];
  await stepDownFrom(`nats-${leader + 1}`, (line) => lines.push(line));
  expect(lines.at(-1)).toBe(`nats-${leader + 1} leads no stream: it can be stopped`);
  expect(await leaderOfLog(system.cluster)).not.toBe(leader);

  await expect(stepDownFrom("nats-9", () => {})).rejects.toThrow(/no stream has a copy on "nats-9"/);
  const away = system.cluster.natsServers[leader]!;
  away.kill("SIGKILL");
  await away.exited;
  const other = `nats-${((leader + 1) % 3) + 1}`;
  await expect
    .poll(() => stepDownFrom(other, () => {}, "0").then(() => "done", String), { timeout: 120_000, interval: 500 })
    .toMatch(/no majority of copies elsewhere \(nats-\d behind or away\)/);
  await away.restart();
});

test(
  `[CHA4] faults of NATS, of processes and of lines lose no acknowledged edit, reuse no seq and leave nobody apart (seed ${SEED})`,
  { timeout: 400_000 },
  async () => {
    const report = await runChaos(
      system.target,
      { seed: SEED, rounds: 6, secondsMax: 40, rooms: 2, roomsNamed: "chaos", everyMs: 150, only: "" },
      (line) => process.stdout.write(`${line}\n`),
    );
    expect(report.sums.acked).toBe(report.sums.typed);
    expect(report.sums.typed).toBeGreaterThan(100);
  },
);
