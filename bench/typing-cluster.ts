/**
 * A complete Coroom whose rooms all receive edits at a steady rate, for experiments on the delays that writers notice.
 * Each room has one writer and one reader, over two gateways. The connection of each room server to a single
 * nats-server can be cut.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { type KV, Kvm } from "@nats-io/kv";
import { TimeoutError } from "nats";

import { decodeJson } from "../shared/bus/json-messages.ts";
import { inboxOf } from "../shared/bus/permissions.ts";
import { PlannedRoom, RoomEntry } from "../shared/bus/placement-messages.ts";
import { type Subjects, subjectsOf } from "../shared/bus/subjects.ts";
import { type ClientKey, type RoomId, roomKey, type RoomKey, type ServerId, type TenantId } from "../shared/ids.ts";
import { connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { SystemCluster, type Process } from "../test/system/cluster.ts";
import { CuttableConnection } from "../test/system/cuttable-connection.ts";
import { eventually } from "../test/system/eventually.ts";
import { processOf, serverOf } from "../test/system/owner.ts";
import { RoomLoad } from "./load/room-load.ts";

/**
 * `settings`: environment variables of every process, without their prefix. `roomServerSettings`: further variables of
 * each room server.
 */
export type TypingOptions = {
  readonly rooms: number;
  readonly roomServers: number;
  readonly editsPerSecond: number;
  /** With three, everything has three copies. Default: one. */
  readonly natsServers?: number;
  /** nats-server syncs to disk before it answers. Default: no sync. */
  readonly syncAlways?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
  readonly roomServerSettings?: readonly Readonly<Record<string, string>>[];
};

export type OwningServer = { readonly server: ServerId; readonly process: Process; readonly connection: CuttableConnection };

const SETTLED_MS_MAX = 30_000;
/** Few enough not to slow down the placement whose plans are read. */
const ASKED_AT_ONCE = 50;
const NO_RATE_LIMIT = String(1e9);

export class TypingCluster {
  readonly cluster: SystemCluster;
  readonly nats: NatsConnection;
  readonly subjects: Subjects;
  readonly rooms: readonly RoomLoad[];
  readonly #connections: readonly CuttableConnection[];
  readonly #entries: KV;
  readonly #plans: KV;
  readonly #typing: NodeJS.Timeout[];

  private constructor(
    parts: Pick<TypingCluster, "cluster" | "nats" | "subjects" | "rooms"> & {
      connections: readonly CuttableConnection[];
      entries: KV;
      plans: KV;
    },
    editsPerSecond: number,
  ) {
    this.cluster = parts.cluster;
    this.nats = parts.nats;
    this.subjects = parts.subjects;
    this.rooms = parts.rooms;
    this.#connections = parts.connections;
    this.#entries = parts.entries;
    this.#plans = parts.plans;
    const everyMs = 1000 / editsPerSecond;
    this.#typing = this.rooms.map((room, index) =>
      setInterval(() => room.writers.forEach((writer) => room.send(writer)), everyMs + (everyMs * index) / (10 * this.rooms.length)),
    );
  }

  static async start(options: TypingOptions): Promise<TypingCluster> {
    const connections: CuttableConnection[] = [];
    const cluster = await SystemCluster.start({
      gateways: 2,
      roomServers: options.roomServers,
      natsServers: options.natsServers ?? 1,
      syncAlways: options.syncAlways ?? false,
      settings: {
        EDIT_BURST: NO_RATE_LIMIT,
        EDITS_PER_SECOND: NO_RATE_LIMIT,
        CONNECTS_PER_SECOND_MAX: NO_RATE_LIMIT,
        ABUSE_POINTS_MAX: NO_RATE_LIMIT,
        TENANT_ABUSE_POINTS_MAX: NO_RATE_LIMIT,
        SILENCE_MS_MAX: "3600000",
        CONTROL_LOOP_MS: "1000",
        ...options.settings,
      },
      ...(options.roomServerSettings === undefined ? {} : { roomServerSettings: options.roomServerSettings }),
      natsUrlOf: async ({ role, index }, servers) =>
        role === "room-server" && servers.length === 1
          ? (connections[index] = await CuttableConnection.start(servers[0]!)).url
          : servers.join(","),
    });
    const nats = await connectNats({ servers: cluster.natsUrl, name: "bench", inboxPrefix: inboxOf(cluster.environment, "operator") });
    const subjects = subjectsOf(cluster.environment);
    const [entries, plans] = await Promise.all([new Kvm(nats).open(subjects.roomsBucket), new Kvm(nats).open(subjects.planBucket)]);
    const rooms: RoomLoad[] = [];
    for (let index = 0; index < options.rooms; index++) rooms.push(await openRoom(cluster, index));
    await sleep(1_000);
    return new TypingCluster({ cluster, nats, subjects, rooms, connections, entries, plans }, options.editsPerSecond);
  }

  keyOf({ room }: RoomLoad): RoomKey {
    return roomKey("default" as TenantId, room);
  }

  /** From the rooms bucket. */
  async ownerOf(room: RoomLoad): Promise<ServerId | undefined> {
    const found = await this.#entries.get(this.keyOf(room));
    return found === null ? undefined : decodeJson(RoomEntry, found.value)?.owner;
  }

  /** Whether every room has a running owner and a replica on another running server. */
  async hasReplicas(): Promise<boolean> {
    try {
      return await this.#hasReplicas();
    } catch (error) {
      if (error instanceof TimeoutError) return false; // The buckets may have no leader for a while.
      throw error;
    }
  }

  async #hasReplicas(): Promise<boolean> {
    const live = new Set(this.cluster.roomServers.map(serverOf));
    const hasReplica = async (room: RoomLoad): Promise<boolean> => {
      const [owner, planned] = await Promise.all([this.ownerOf(room), this.#plans.get(this.keyOf(room))]);
      const replica = planned === null ? undefined : decodeJson(PlannedRoom, planned.value)?.replica;
      return owner !== replica && live.has(owner) && live.has(replica);
    };
    for (let first = 0; first < this.rooms.length; first += ASKED_AT_ONCE) {
      const warm = await Promise.all(this.rooms.slice(first, first + ASKED_AT_ONCE).map(hasReplica));
      if (warm.includes(false)) return false; // One room without a replica decides: the caller asks again.
    }
    return true;
  }

  async roomsByOwner(): Promise<Map<ServerId, RoomLoad[]>> {
    const owned = new Map<ServerId, RoomLoad[]>();
    const owners = await Promise.all(this.rooms.map((room) => this.ownerOf(room)));
    for (const [index, room] of this.rooms.entries()) {
      const owner = owners[index];
      if (owner !== undefined) owned.set(owner, [...(owned.get(owner) ?? []), room]);
    }
    return owned;
  }

  running(server: ServerId): OwningServer {
    const process = processOf(this.cluster, server);
    if (process === undefined) throw new Error(`${server} is not a room server of this cluster`);
    return { server, process, connection: this.#connections[this.cluster.roomServers.indexOf(process)]! };
  }

  /** Throws when an edit is missing, repeated or out of order. */
  async stop(): Promise<void> {
    for (const timer of this.#typing) clearInterval(timer);
    await eventually("every member has every edit", () => this.rooms.every((room) => room.isSettled()), SETTLED_MS_MAX);
    await this.abandon();
  }

  /** Ends everything in any state. */
  async abandon(): Promise<void> {
    for (const timer of this.#typing) clearInterval(timer);
    for (const room of this.rooms) room.close();
    await this.nats.close();
    await this.cluster.stop();
    for (const connection of this.#connections) await connection.stop();
  }
}

async function openRoom(cluster: SystemCluster, index: number): Promise<RoomLoad> {
  const [writing, reading] = [cluster.gateways[0]!.url, cluster.gateways[1]!.url];
  const [writer, reader] = await Promise.all([cluster.token("*", "writer"), cluster.token("*", "reader")]);
  const key = (name: string): ClientKey => `${name}${index}`.padEnd(16, "-") as ClientKey;
  const members = [
    { gateway: writing, token: writer, clientKey: key("w"), writes: true },
    { gateway: reading, token: reader, clientKey: key("r"), writes: false },
  ];
  return RoomLoad.open({ room: `room-${index}` as RoomId, members });
}
