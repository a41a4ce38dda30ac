/**
 * Measures the waits of a room's writer and reader when placement moves the room, compared with rooms that are not
 * moved. A measured room has an edit every few milliseconds. Otherwise a short pause could fall between two edits.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { ServerCommandReply } from "../shared/bus/placement-messages.ts";
import { Prng } from "../shared/collections/prng.ts";
import type { ServerId } from "../shared/ids.ts";
import { requestReply } from "../shared/io/nats-json.ts";
import { positiveInteger } from "../shared/settings/settings.ts";
import { eventually } from "../test/system/eventually.ts";
import { defineExperiment } from "./experiment.ts";
import { BEFORE_MS, distribution, type LongestWaits } from "./failover.bench.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { TypingCluster, type TypingOptions } from "./typing-cluster.ts";

/** `waits`: longest waits around each move. `alone`: longest waits in rooms that were not moved, over the same time. */
type MoveWaits = { readonly waits: readonly LongestWaits[]; readonly alone: readonly LongestWaits[] };

const AFTER_MS = 300;
const KEYSTROKE_MS = 5;
const MOVE_MS_MAX = 15_000;
const SETTLED_MS_MAX = 10_000;

async function measureMoves(options: TypingOptions & { readonly moves: number; readonly seed: number }): Promise<MoveWaits> {
  const typing = await TypingCluster.start(options);
  const prng = new Prng(options.seed);
  const [waits, alone]: [LongestWaits[], LongestWaits[]] = [[], []];
  try {
    const servers = [...(await typing.roomsByOwner()).keys()].sort();
    for (let move = 0; move < options.moves; move++) {
      const [moved, left] = [typing.rooms[move % typing.rooms.length]!, typing.rooms[(move + 1) % typing.rooms.length]!];
      alone.push(await around(left, () => sleep(AFTER_MS)));
      const owner = await typing.ownerOf(moved);
      const others = servers.filter((server) => server !== owner);
      waits.push(await around(moved, () => order(typing, moved, owner!, others[prng.below(others.length)]!)));
    }
    await typing.stop();
    return { waits, alone };
  } catch (error) {
    await typing.abandon();
    throw error;
  }
}

async function order(typing: TypingCluster, room: RoomLoad, from: ServerId, to: ServerId): Promise<void> {
  const reply = await requestReply(
    typing.nats,
    typing.subjects.order(from),
    { kind: "hand-over", room: typing.keyOf(room), to, generation: 0 },
    ServerCommandReply,
    MOVE_MS_MAX,
  );
  if (reply?.kind !== "done") throw new Error(`${room.room} was not moved from ${from} to ${to}: ${reply?.reason ?? "no answer"}`);
}

/** Longest waits for edits sent shortly before, during and shortly after `what`. */
async function around(room: RoomLoad, what: () => Promise<void>): Promise<LongestWaits> {
  const measured = (room.measured = new Measured());
  const keys = setInterval(() => room.writers.forEach((writer) => room.send(writer)), KEYSTROKE_MS);
  try {
    await sleep(BEFORE_MS);
    measured.begin(performance.now() - BEFORE_MS);
    await what();
    await sleep(AFTER_MS);
    measured.end(performance.now());
  } finally {
    clearInterval(keys);
  }
  await eventually(`${room.room} is settled`, () => room.writers.every(({ sent, acked }) => acked === sent), SETTLED_MS_MAX);
  return { acked: measured.acked.percentile(100), seen: measured.seen.percentile(100) };
}

export const moves = defineExperiment({
  name: "moves",
  summary: "waits of writers and readers when placement moves their room; two minutes",
  settings: {
    moves: { parse: positiveInteger, fallback: 100, meaning: "moves, one after the other" },
    rooms: { parse: positiveInteger, fallback: 50, meaning: "rooms, each with one writer and one reader" },
    roomServers: { parse: positiveInteger, fallback: 3, meaning: "room servers" },
    editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "edits per second of each room; the measured room has 200" },
    seed: { parse: positiveInteger, fallback: 1, meaning: "seed that selects each room's new server" },
  },
  run: async (options, print) => {
    const { waits, alone } = await measureMoves(options);
    for (const [title, measured] of [
      [`${waits.length} rooms moved`, waits],
      ["as many rooms that were not moved", alone],
    ] as const) {
      const acked = measured.map((room) => room.acked);
      const seen = measured.map((room) => room.seen);
      print(title);
      print(lineOf("longest wait of the writer for an ack", acked));
      print(lineOf("longest wait of the reader for an edit", seen));
    }
    print("no edit missing, none twice, the same order everywhere");
  },
});

function lineOf(name: string, waits: readonly number[]): string {
  const { p50, p99, max } = distribution(waits);
  return `  ${name.padEnd(38)} p50 ${p50.toFixed(1).padStart(7)} ms   p99 ${p99.toFixed(1).padStart(7)} ms   max ${max.toFixed(1).padStart(7)} ms`;
}
