/**
 * What people in a room notice when its owner is killed, paused or cut off, or hands the room over: for every room that
 * the server owned, how long its writer waited for an ack, and its reader to see what was written, at the longest.
 *
 * Everybody writes on at a steady pace, so a wait is counted from the moment of writing; 0 would be a fault unnoticed.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { OrderReply } from "../shared/bus/placement-messages.ts";
import { askNats } from "../shared/io/nats-ask.ts";
import { eventually } from "../test/system/eventually.ts";
import { Latencies } from "./load/latencies.ts";
import { Measured } from "./load/measured.ts";
import type { RoomLoad } from "./load/room-load.ts";
import { type OwningServer, TypingCluster, type TypingOptions } from "./typing-cluster.ts";

export const DISTURBANCES = ["left alone", "killed", "paused", "cut off", "stopped", "emptied"] as const;
/** `left alone`: what a room notices of this machine being busy. `stopped`: in good order, as a rolling restart does it. `emptied`: its rooms are moved away while it runs on. */
export type Disturbance = (typeof DISTURBANCES)[number];

export type FailoverOptions = TypingOptions & { readonly seconds: number };

/** One room's longest waits, in milliseconds. */
export type Waits = { readonly acked: number; readonly seen: number };

/** Edits written so shortly before may be under way. */
export const BEFORE_MS = 100;
const SETTLED_MS_MAX = 30_000;

export class FailoverBench {
  readonly #typing: TypingCluster;
  readonly #seconds: number;

  private constructor(typing: TypingCluster, seconds: number) {
    this.#typing = typing;
    this.#seconds = seconds;
  }

  static async start(options: FailoverOptions): Promise<FailoverBench> {
    return new FailoverBench(await TypingCluster.start(options), options.seconds);
  }

  /** Does it to the server with the most rooms, and undoes it when everybody has everything again. */
  async disturb(disturbance: Disturbance): Promise<{ rooms: number; waits: Waits[] }> {
    const { owner, rooms } = await this.#busiest();
    const measured = rooms.map((room) => {
      room.measured = new Measured();
      room.measured.begin(performance.now() - BEFORE_MS);
      return room.measured;
    });
    const undo = await this.#strike(disturbance, owner);
    await sleep(this.#seconds * 1_000);
    for (const one of measured) one.end(performance.now());
    const waits = (): number[] => measured.map(({ acked, seen }) => Math.min(acked.total, seen.total));
    const expected = measured.map((_, index) => waits()[index]!);
    await eventually("every room goes on", () => waits().every((count, index) => count >= Math.max(1, expected[index]!)), SETTLED_MS_MAX);
    await undo();
    await sleep(1_000);
    return { rooms: rooms.length, waits: measured.map(({ acked, seen }) => ({ acked: acked.percentile(100), seen: seen.percentile(100) })) };
  }

  /** Throws if anything is missing, doubled or out of order. */
  stop(): Promise<void> {
    return this.#typing.stop();
  }

  abandon(): Promise<void> {
    return this.#typing.abandon();
  }

  async #strike(disturbance: Disturbance, { server, process, line }: OwningServer): Promise<() => Promise<void>> {
    switch (disturbance) {
      case "left alone":
        return async () => {};
      case "killed":
        await process.kill();
        return () => process.startAgain();
      case "paused":
        process.signal("SIGSTOP");
        return async () => process.signal("SIGCONT");
      case "cut off":
        line.cut();
        return async () => line.mend();
      case "emptied":
        await askNats(this.#typing.nats, this.#typing.subjects.order(server), { kind: "drain" }, OrderReply, 1_000);
        return () => process.restart();
      case "stopped":
        process.signal("SIGTERM");
        return async () => {
          await process.exited;
          await process.startAgain();
        };
    }
  }

  async #busiest(): Promise<{ owner: OwningServer; rooms: RoomLoad[] }> {
    const [server, rooms] = [...(await this.#typing.roomsByOwner())].sort(([, a], [, b]) => b.length - a.length)[0]!;
    return { owner: this.#typing.running(server), rooms };
  }
}

/** Over all rooms and all disturbances of a kind. */
export function distribution(waits: readonly number[]): { rooms: number; p50: number; p99: number; max: number } {
  const latencies = new Latencies();
  for (const wait of waits) latencies.record(wait);
  return { rooms: waits.length, p50: latencies.percentile(50), p99: latencies.percentile(99), max: latencies.percentile(100) };
}
