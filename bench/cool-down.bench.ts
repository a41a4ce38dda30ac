/**
 * A room suddenly takes half of its server's budget. Measures how long placement needs to move it to the dedicated
 * server, and how long writers in the server's other rooms wait for acks before, during and after this time.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { positiveInteger } from "../shared/settings/settings.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { eventually } from "../test/system/eventually.ts";
import { defineExperiment } from "./experiment.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { TypingCluster } from "./typing-cluster.ts";

type CoolDownOptions = {
  readonly rooms: number;
  readonly editsPerSecond: number;
  readonly hotEditsPerSecond: number;
  readonly controlLoopMs: number;
  readonly seconds: number;
};

/** `movedAfterMs`: from the first edit at the high rate. Neighbours: the other rooms of the hot room's first server. */
type CoolDownFigures = {
  readonly movedAfterMs: number;
  readonly neighbours: number;
  readonly before: Latencies;
  readonly beside: Latencies;
  readonly after: Latencies;
};

/** Budget of a room server as a multiple of the hot room's rate. */
const BUDGET_TIMES = 2;
const MOVED_MS_MAX = 60_000;
const SETTLED_MS_MAX = 10_000;
const TURN_MS = 5;

async function measureCoolDown(options: CoolDownOptions): Promise<CoolDownFigures> {
  const typing = await TypingCluster.start({
    rooms: options.rooms,
    editsPerSecond: options.editsPerSecond,
    roomServers: 3,
    settings: { CONTROL_LOOP_MS: String(options.controlLoopMs), BUDGET_EDITS_PER_SECOND: String(options.hotEditsPerSecond * BUDGET_TIMES) },
    roomServerSettings: [{}, {}, { SERVER_POOL: "dedicated" }],
  });
  let cool = (): void => {};
  try {
    const [server, [hot, ...neighbours]] = [...(await typing.roomsByOwner())].sort(([, a], [, b]) => b.length - a.length)[0]!;
    const during = (what: () => Promise<unknown>): Promise<Latencies> => ackedOf(neighbours, what);
    const before = await during(() => sleep(options.seconds * 1_000));

    const begun = performance.now();
    cool = heat(hot!, options.hotEditsPerSecond);
    const beside = await during(() =>
      eventually("the hot room is moved", async () => (await typing.ownerOf(hot!)) !== server, MOVED_MS_MAX),
    );
    const movedAfterMs = performance.now() - begun;
    const after = await during(() => sleep(options.seconds * 1_000));
    cool();
    await typing.stop();
    return { movedAfterMs, neighbours: neighbours.length, before, beside, after };
  } catch (error) {
    cool();
    await typing.abandon();
    throw error;
  }
}

function heat(room: RoomLoad, editsPerSecond: number): () => void {
  let due = performance.now();
  const timer = setInterval(() => {
    for (const now = performance.now(); due < now; due += 1_000 / editsPerSecond) room.writers.forEach((writer) => room.send(writer));
  }, TURN_MS);
  return () => clearInterval(timer);
}

/** Ack latencies of the edits that the rooms' writers send during `what`. */
async function ackedOf(rooms: readonly RoomLoad[], what: () => Promise<unknown>): Promise<Latencies> {
  const all = rooms.map((room) => {
    room.measured = new Measured();
    room.measured.begin(performance.now());
    return room.measured;
  });
  await what();
  for (const measured of all) measured.end(performance.now());
  await eventually(
    "the neighbours are settled",
    () => rooms.every(({ writers }) => writers.every(({ sent, acked }) => sent - acked <= 1)),
    SETTLED_MS_MAX,
  );
  const together = new Latencies();
  for (const { acked } of all) together.add(acked);
  return together;
}

export const coolDown = defineExperiment({
  name: "cool-down",
  summary: "a room suddenly takes half of its server's budget: when placement moves it, and what its neighbours wait; a minute",
  settings: {
    rooms: { parse: positiveInteger, fallback: 40, meaning: "rooms, each with one writer and one reader" },
    editsPerSecond: { parse: positiveInteger, fallback: 5, meaning: "edits per second of each room" },
    hotEditsPerSecond: { parse: positiveInteger, fallback: 2_000, meaning: "edits per second of the hot room: half of a server's budget" },
    controlLoopMs: { parse: positiveInteger, fallback: 10_000, meaning: "milliseconds between two rounds of placement" },
    seconds: { parse: positiveInteger, fallback: 10, meaning: "seconds that the neighbours are measured before and after the move" },
  },
  run: async (options, print) => {
    const { movedAfterMs, neighbours, before, beside, after } = await measureCoolDown(options);
    print(
      `a room of ${options.hotEditsPerSecond} edits/s was moved to the dedicated server ${(movedAfterMs / 1_000).toFixed(1)} s after its first edit`,
    );
    print(`its ${neighbours} neighbours waited for acks`);
    print(lineOf("before it was hot", before));
    print(lineOf("on the same server", beside));
    print(lineOf("after it had moved", after));
    print("no edit missing, none twice, the same order everywhere");
  },
});

function lineOf(name: string, acks: Latencies): string {
  return `  ${name.padEnd(24)} p50 ${acks.percentile(50).toFixed(1).padStart(7)} ms   p99 ${acks.percentile(99).toFixed(1).padStart(7)} ms   (${acks.total} edits)`;
}
