/**
 * What people in a room notice when it is moved to another server while everybody writes: how long its writer waited for
 * an ack at the longest around each move, beside stretches as long in which it was left alone. While it is looked at a
 * room is written in every few milliseconds, or a short pause would fall between two edits.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { OrderReply } from "../shared/bus/placement-messages.ts";
import type { ServerId } from "../shared/ids.ts";
import { askNats } from "../shared/io/nats-ask.ts";
import { Prng } from "../shared/prng.ts";
import { eventually } from "../test/system/eventually.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { TypingCluster, type TypingOptions } from "./typing-cluster.ts";
import { BEFORE_MS, type Waits } from "./failover.bench.ts";

/** `waits`: around each move. `alone`: of rooms that were not moved, for as long. */
export type Moves = { readonly waits: readonly Waits[]; readonly alone: readonly Waits[] };

const AFTER_MS = 300;
const KEYSTROKE_MS = 5;
const MOVE_MS_MAX = 15_000;
const SETTLED_MS_MAX = 10_000;

export async function measureMoves(options: TypingOptions & { readonly moves: number; readonly seed: number }): Promise<Moves> {
  const typing = await TypingCluster.start(options);
  const prng = new Prng(options.seed);
  const [waits, alone]: [Waits[], Waits[]] = [[], []];
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
  const reply = await askNats(
    typing.nats,
    typing.subjects.order(from),
    { kind: "hand-over", room: typing.keyOf(room), to, generation: 0 },
    OrderReply,
    MOVE_MS_MAX,
  );
  if (reply?.kind !== "done") throw new Error(`${room.room} was not moved from ${from} to ${to}: ${reply?.reason ?? "no answer"}`);
}

/** The longest waits for what was written shortly before, during and shortly after. */
async function around(room: RoomLoad, what: () => Promise<void>): Promise<Waits> {
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
