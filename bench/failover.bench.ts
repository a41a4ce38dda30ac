/**
 * What people in a room notice when its owner is killed, paused or cut off, or hands the room over, or when the leader of
 * the log is lost: for every room that it touches, how long its writer waited for an ack, and its reader to see what was
 * written, at the longest; and how long after the blow the next edit was acknowledged, one being written at that moment.
 *
 * Everybody writes on at a steady pace, so a wait is counted from the moment of writing; 0 would be a fault unnoticed.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { eventually } from "../test/system/eventually.ts";
import { leaderOfLog } from "../test/system/log-leader.ts";
import { type Disturbance, isOfTheLog, strike } from "./disturbances.ts";
import { Latencies } from "./load/latencies.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { TypingCluster, type TypingOptions } from "./typing-cluster.ts";

export type FailoverOptions = TypingOptions & { readonly seconds: number };

/** One room's longest waits, in milliseconds. */
export type Waits = { readonly acked: number; readonly seen: number };

/** `shown`: seen, be it before the log had it. `back`: from the blow to the next ack. */
export type BlowWaits = Waits & { readonly shown: number; readonly back: number };

/** Edits written so shortly before may be under way. */
export const BEFORE_MS = 100;
const SETTLED_MS_MAX = 60_000;
const WARM_MS_MAX = 180_000;
/** Copies are planned before they are read: without it what the blow before left to do is measured with the next. */
const CALM_MS = 3_000;
/** Whoever takes rooms over keeps them: the next blow falls on a server that has them all. */
const UNBALANCED = { IMBALANCE_PERCENT: "1000000", TENANT_EDITS_PER_SECOND_MAX: "1000000000" };

export class FailoverBench {
  readonly #typing: TypingCluster;
  readonly #seconds: number;

  private constructor(typing: TypingCluster, seconds: number) {
    this.#typing = typing;
    this.#seconds = seconds;
  }

  static async start(options: FailoverOptions): Promise<FailoverBench> {
    return new FailoverBench(await TypingCluster.start({ ...options, settings: { ...UNBALANCED, ...options.settings } }), options.seconds);
  }

  /** Does it to the server with the most rooms, or to the log, and undoes it when everybody goes on. */
  async disturb(disturbance: Disturbance): Promise<{ rooms: number; waits: BlowWaits[] }> {
    const typing = this.#typing;
    await eventually("every room has a warm copy", () => typing.isWarm(), WARM_MS_MAX); // As it is between two faults.
    await sleep(CALM_MS);
    const [server, owned] = [...(await typing.roomsByOwner())].sort(([, a], [, b]) => b.length - a.length)[0]!;
    const rooms = isOfTheLog(disturbance) ? typing.rooms : owned;
    const victims = {
      ...typing.running(server),
      cluster: typing.cluster,
      nats: typing.nats,
      logLeader: typing.cluster.natsServers[await leaderOfLog(typing.cluster)]!,
    };

    const struckAt = performance.now();
    const measured = rooms.map((room) => (room.measured = new AroundABlow(struckAt)));
    const striking = strike(disturbance, victims);
    rooms.forEach(write);
    const undo = await striking;
    await sleep(this.#seconds * 1_000);
    for (const one of measured) one.end(performance.now());
    const written = rooms.map(({ writers }) => writers.reduce((sum, { sent }) => sum + sent, 0));
    await eventually(
      "everybody has what was written until now",
      () => rooms.every((room, index) => room.everywhere() >= written[index]!),
      SETTLED_MS_MAX,
    );
    await undo();
    return { rooms: rooms.length, waits: measured.map((one) => one.waits()) };
  }

  /** Throws if anything is missing, doubled or out of order. */
  stop(): Promise<void> {
    return this.#typing.stop();
  }

  abandon(): Promise<void> {
    return this.#typing.abandon();
  }
}

/** What a room's people wait for around a blow, and when the first edit written after it was acknowledged. */
class AroundABlow extends Measured {
  readonly #struckAt: number;
  #backMs: number | undefined;

  constructor(struckAt: number) {
    super();
    this.#struckAt = struckAt;
    this.begin(struckAt - BEFORE_MS);
  }

  override receiveAcked(sentAt: number, now: number): void {
    super.receiveAcked(sentAt, now);
    if (sentAt >= this.#struckAt) this.#backMs ??= now - this.#struckAt;
  }

  waits(): BlowWaits {
    return {
      acked: this.acked.percentile(100),
      seen: this.seen.percentile(100),
      shown: this.shown.percentile(100),
      back: this.#backMs ?? Number.NaN,
    };
  }
}

function write(room: RoomLoad): void {
  for (const writer of room.writers) room.send(writer);
}

/** Over all rooms and all disturbances of a kind. */
export function distribution(waits: readonly number[]): { rooms: number; p50: number; p99: number; max: number } {
  const latencies = new Latencies();
  for (const wait of waits) latencies.record(wait);
  return { rooms: waits.length, p50: latencies.percentile(50), p99: latencies.percentile(99), max: latencies.percentile(100) };
}
