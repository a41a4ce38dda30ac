/**
 * What people in a room notice when its owner is killed, paused or cut off, or hands the room over: for every room that
 * the server owned, how long its writer waited for an ack, and its reader to see what was written, at the longest.
 *
 * Everybody writes on at a steady pace, so a wait is counted from the moment of writing; 0 would be a fault unnoticed.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Kvm } from "@nats-io/kv";

import { decodeJson, OrderReply, RoomEntry } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { ClientKey, RoomId, ServerId } from "../shared/ids.ts";
import { connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { askNats } from "../shared/io/nats-ask.ts";
import { Cluster, type Process } from "../test/system/cluster.ts";
import { CuttableLine } from "../test/system/cuttable-line.ts";
import { eventually } from "../test/system/eventually.ts";
import { processOf } from "../test/system/owner.ts";
import { Latencies } from "./load/latencies.ts";
import { Measured } from "./load/measured.ts";
import { RoomLoad } from "./load/room-load.ts";

export const DISTURBANCES = ["left alone", "killed", "paused", "cut off", "stopped", "emptied"] as const;
/** `left alone`: what a room notices of this machine being busy. `stopped`: in good order, as a rolling restart does it. `emptied`: its rooms are moved away while it runs on. */
export type Disturbance = (typeof DISTURBANCES)[number];

export type FailoverOptions = { readonly rooms: number; readonly roomServers: number; readonly editsPerSecond: number; readonly seconds: number; readonly settings?: Readonly<Record<string, string>> };

/** One room's longest waits, in milliseconds. */
export type Waits = { readonly acked: number; readonly seen: number };

/** Edits written so shortly before may be under way. */
const BEFORE_MS = 100;
const SETTLED_MS_MAX = 30_000;
const NO_RATE_LIMIT = String(1e9);

export class FailoverBench {
  readonly #cluster: Cluster;
  readonly #lines: readonly CuttableLine[];
  readonly #nats: NatsConnection;
  readonly #rooms: readonly RoomLoad[];
  readonly #options: FailoverOptions;
  readonly #typing: NodeJS.Timeout[];

  private constructor(cluster: Cluster, lines: readonly CuttableLine[], nats: NatsConnection, rooms: readonly RoomLoad[], options: FailoverOptions) {
    this.#cluster = cluster;
    this.#lines = lines;
    this.#nats = nats;
    this.#rooms = rooms;
    this.#options = options;
    const everyMs = 1000 / options.editsPerSecond;
    this.#typing = rooms.map((room, index) => setInterval(() => room.writers.forEach((writer) => room.send(writer)), everyMs + (everyMs * index) / (10 * rooms.length)));
  }

  static async start(options: FailoverOptions): Promise<FailoverBench> {
    const lines: CuttableLine[] = [];
    const cluster = await Cluster.start({
      gateways: 2,
      roomServers: options.roomServers,
      settings: { EDIT_BURST: NO_RATE_LIMIT, EDITS_PER_SECOND: NO_RATE_LIMIT, CONNECTS_PER_SECOND_MAX: NO_RATE_LIMIT, SILENCE_MS_MAX: "3600000", CONTROL_LOOP_MS: "1000", ...options.settings },
      roomServerNatsUrl: async (server, index) => (lines[index] = await CuttableLine.start(server)).url,
    });
    const nats = await connectNats({ servers: cluster.nats.url, name: "failover-bench" });
    const [writing, reading] = [cluster.gateways[0]!.url, cluster.gateways[1]!.url];
    const [writer, reader] = await Promise.all([cluster.token("*", "writer"), cluster.token("*", "reader")]);
    const rooms: RoomLoad[] = [];
    for (let index = 0; index < options.rooms; index++) {
      const key = (name: string): ClientKey => `${name}${index}`.padEnd(16, "-") as ClientKey;
      const members = [{ gateway: writing, token: writer, clientKey: key("w"), writes: true }, { gateway: reading, token: reader, clientKey: key("r"), writes: false }];
      rooms.push(await RoomLoad.open({ room: `room-${index}` as RoomId, members }));
    }
    await sleep(1_000);
    return new FailoverBench(cluster, lines, nats, rooms, options);
  }

  /** Does it to the server with the most rooms, and undoes it when everybody has everything again. */
  async disturb(disturbance: Disturbance): Promise<{ rooms: number; waits: Waits[] }> {
    const { server, process, line, rooms } = await this.#busiest();
    const measured = rooms.map((room) => {
      room.measured = new Measured();
      room.measured.begin(performance.now() - BEFORE_MS);
      return room.measured;
    });
    const undo = await this.#strike(disturbance, process, line, server);
    await sleep(this.#options.seconds * 1_000);
    for (const one of measured) one.end(performance.now());
    const waits = (): number[] => measured.map(({ acked, seen }) => Math.min(acked.total, seen.total));
    const expected = measured.map((_, index) => waits()[index]!);
    await eventually("every room goes on", () => waits().every((count, index) => count >= Math.max(1, expected[index]!)), SETTLED_MS_MAX);
    await undo();
    await sleep(1_000);
    return { rooms: rooms.length, waits: measured.map(({ acked, seen }) => ({ acked: acked.percentile(100), seen: seen.percentile(100) })) };
  }

  async stop(): Promise<void> {
    for (const timer of this.#typing) clearInterval(timer);
    await eventually("everybody has everything", () => this.#rooms.every((room) => room.isSettled()), SETTLED_MS_MAX);
    await this.abandon();
  }

  /** Whatever it is at. */
  async abandon(): Promise<void> {
    for (const timer of this.#typing) clearInterval(timer);
    for (const room of this.#rooms) room.close();
    await this.#nats.close();
    await this.#cluster.stop();
    for (const line of this.#lines) await line.stop();
  }

  async #strike(disturbance: Disturbance, process: Process, line: CuttableLine, server: ServerId): Promise<() => Promise<void>> {
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
        await askNats(this.#nats, subjectsOf(this.#cluster.environment).order(server), { kind: "drain" }, OrderReply, 1_000);
        return () => process.restart();
      case "stopped":
        process.signal("SIGTERM");
        return async () => {
          await process.exited;
          await process.startAgain();
        };
    }
  }

  async #busiest(): Promise<{ server: ServerId; process: Process; line: CuttableLine; rooms: RoomLoad[] }> {
    const kv = await new Kvm(this.#nats).open(subjectsOf(this.#cluster.environment).roomsBucket);
    const owned = new Map<ServerId, RoomLoad[]>();
    for (const room of this.#rooms) {
      const found = await kv.get(`default.${room.room}`);
      const owner = found === null ? undefined : decodeJson(RoomEntry, found.value)?.owner;
      if (owner !== undefined) owned.set(owner, [...(owned.get(owner) ?? []), room]);
    }
    const [server, rooms] = [...owned].sort(([, a], [, b]) => b.length - a.length)[0]!;
    const process = processOf(this.#cluster, server)!;
    const index = this.#cluster.roomServers.indexOf(process);
    return { server, process, line: this.#lines[index]!, rooms };
  }
}

/** Over all rooms and all disturbances of a kind. */
export function distribution(waits: readonly number[]): { rooms: number; p50: number; p99: number; max: number } {
  const latencies = new Latencies();
  for (const wait of waits) latencies.record(wait);
  return { rooms: waits.length, p50: latencies.percentile(50), p99: latencies.percentile(99), max: latencies.percentile(100) };
}
