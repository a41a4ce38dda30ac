/**
 * Placement commands: where rooms are and why, moves, drains and pins. They need NATS and the room servers. The role
 * placement is needed only for planned moves.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstream } from "@nats-io/jetstream";
import type { z } from "zod";

import { assertNever } from "../shared/assert.ts";
import { CheckpointEntry, isDeleted } from "../shared/bus/checkpoint.ts";
import { encodeJson } from "../shared/bus/json-messages.ts";
import { ownerReasonIn, PlannedRoom, RoomEntry, RoomPin, ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { SettingError, type Values } from "../shared/settings/settings.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { NatsConnection } from "../shared/io/nats.ts";
import { kvBucket } from "../shared/io/jetstream-stores.ts";
import { subscribeJson } from "../shared/io/nats-json.ts";
import { bucketOf, moveRoomTo, commandServer, type PlacementAccess, readEntry } from "../shared/io/move-room.ts";
import type { PrintLine } from "./command.ts";
import { roomOfFlags, withOperator } from "./ops.ts";
import type { opsDrainSettings, opsExplainSettings, opsMoveSettings, opsPinSettings, whereSettings } from "./command-settings.ts";

type Where = Values<typeof whereSettings>;
type OfRoom = Values<typeof opsExplainSettings>;

/**
 * Live servers send a heartbeat within this time. When servers announce a longer interval, the command waits for 1.5
 * intervals.
 */
const LISTEN_MS = 800;
const LISTEN_BEATS = 1.5;
const DRAIN_MS_MAX = 60_000;

export function showServers(config: Where, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const heartbeats = await listen(nats, config);
    for (const { server, rooms, draining, labels, load } of heartbeats) {
      const facts = [
        `rooms=${rooms}`,
        `used=${percent(load?.used ?? 0)}`,
        `host=${labels?.host ?? ""}`,
        ...(labels?.zone ? [`zone=${labels.zone}`] : []),
        ...(labels?.pool ? [`pool=${labels.pool}`] : []),
        ...(draining ? ["draining"] : []),
      ];
      print([server, ...facts].join(" "));
      for (const { room, share } of load?.hot ?? []) print(`  ${room} uses ${percent(share)}`);
    }
    if (heartbeats.length === 0)
      print("no heartbeat from any room server. Start one, or set COROOM_ENVIRONMENT and COROOM_NATS_URL to those of the room servers");
  });
}

export function explainRoom(config: OfRoom, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const room = roomOfFlags(config);
    const subjects = subjectsOf(config.environment);
    const [checkpoint, entry, planned, pin] = await Promise.all([
      read(nats, config, subjects.checkpointsBucket, room, CheckpointEntry),
      read(nats, config, subjects.roomsBucket, room, RoomEntry),
      read(nats, config, subjects.planBucket, room, PlannedRoom),
      read(nats, config, subjects.pinsBucket, room, RoomPin),
    ]);
    if (isDeleted(checkpoint)) return print(`${room} is deleted: joins are rejected, and the room id cannot be used again`);
    const live = (await listen(nats, config)).map(({ server }) => server);
    const state = (server: ServerId): string => (live.includes(server) ? server : `${server}, which sends no heartbeat`);
    print(
      entry === undefined
        ? `${room} is not open: the next join opens it`
        : `${room} is owned by ${state(entry.owner)} (epoch ${entry.epoch})`,
    );
    if (planned === undefined)
      print(entry === undefined ? "placement has no plan for it" : "gateways chose its server by hash; placement has no plan for it yet");
    else {
      print(`${new Date(planned.at).toISOString()} plan ${planned.generation}: ${planned.reason}`);
      const ownerReason = entry === undefined ? undefined : ownerReasonIn(planned, entry.owner);
      if (ownerReason !== undefined && ownerReason !== planned.reason) print(`reason for the present owner: ${ownerReason}`);
      print(planned.replica === undefined ? "it has no replica" : `replica: ${state(planned.replica)}`);
    }
    if (pin !== undefined) print(`it is pinned to ${JSON.stringify(pin)}`);
  });
}

export function moveRoom(config: Values<typeof opsMoveSettings>, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const [room, to] = [roomOfFlags(config), config.to as ServerId];
    const outcome = await moveRoomTo(placed(nats, config), room, to);
    switch (outcome.kind) {
      case "moved":
        return print(outcome.from === to ? `${room} is already on ${to}` : `${room} has moved from ${outcome.from} to ${to}`);
      case "open-nowhere":
        throw new SettingError(`${room} is not open, so it cannot be moved. A room opens when a client joins it`);
      case "refused":
        throw new SettingError(outcome.reason);
      case "silent":
        throw notAnswering(outcome.server);
      default:
        return assertNever(outcome);
    }
  });
}

/**
 * Resolves when the server has no rooms. The server keeps running and takes no rooms. A server without heartbeats may
 * only be late, so silence does not count as empty.
 */
export function drainServer(config: Values<typeof opsDrainSettings>, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const server = config.server as ServerId;
    const drain = (): ReturnType<typeof commandServer> => commandServer(placed(nats, config), server, { kind: "drain" });
    const reply = await drain();
    if (reply?.kind !== "done") throw reply === undefined ? notAnswering(server) : new SettingError(reply.reason);
    const until = performance.now() + DRAIN_MS_MAX;
    let heartbeat: ServerHeartbeat | undefined;
    for (let left: number | undefined; performance.now() < until; left = heartbeat?.rooms ?? left) {
      heartbeat = (await listen(nats, config)).find((beat) => beat.server === server);
      if (heartbeat?.rooms === 0) return print(`${server} has no rooms left and can be stopped`);
      if (heartbeat !== undefined && heartbeat.rooms !== left) print(`${server} has ${heartbeat.rooms} rooms`);
      else if (heartbeat !== undefined) await drain(); // A drain tries each room once. A room that no server accepted at that moment is tried again.
    }
    if (heartbeat === undefined)
      throw new SettingError(
        `${server} sends no heartbeats any more. If it has stopped, the servers with its replicas take over its rooms. Check with coroom ops servers`,
      );
    throw new SettingError(`${server} still has rooms. Check that another room server can take them`);
  });
}

/**
 * Without a pool and a host the pin is removed. A pin without a matching server is refused, because the name is
 * probably misspelt.
 */
export function pinRoom(config: Values<typeof opsPinSettings>, print: PrintLine): Promise<void> {
  return withOperator(config, async (nats) => {
    const room = roomOfFlags(config);
    const pins = await kvBucket(jetstream(nats), subjectsOf(config.environment).pinsBucket, { replicas: config.logReplicas });
    const toPool = config.pool === "" ? {} : { pool: config.pool };
    const toHost = config.onHost === "" ? {} : { host: config.onHost };
    const pin: RoomPin = { ...toPool, ...toHost };
    if (Object.keys(pin).length === 0) {
      await pins.delete(room);
      return print(`${room} is no longer pinned`);
    }
    await expectServerFor(pin, nats, config);
    await pins.put(room, encodeJson(pin));
    print(`${room} is pinned to ${JSON.stringify(pin)}; the next placement plan moves it`);
  });
}

async function expectServerFor({ pool, host }: RoomPin, nats: NatsConnection, config: Where): Promise<void> {
  const labels = (await listen(nats, config)).map((heartbeat) => heartbeat.labels);
  if (labels.some((of) => (pool === undefined || of?.pool === pool) && (host === undefined || of?.host === host))) return;
  const asked = [...(pool === undefined ? [] : [`of the pool ${pool}`]), ...(host === undefined ? [] : [`on the host ${host}`])].join(" ");
  const pools = [...new Set(labels.flatMap((of) => of?.pool || []))].sort().join(", ") || "none";
  const hosts = [...new Set(labels.flatMap((of) => of?.host || []))].sort().join(", ") || "none";
  throw new SettingError(`no heartbeat from a room server ${asked}. Start one first. Known pools: ${pools}; hosts: ${hosts}`);
}

function notAnswering(server: ServerId): SettingError {
  return new SettingError(`${server} does not answer. Run coroom ops servers for the list of live servers`);
}

async function listen(nats: NatsConnection, { environment }: Where): Promise<ServerHeartbeat[]> {
  const heartbeats = new Map<ServerId, ServerHeartbeat>();
  const receive = (heartbeat: ServerHeartbeat): void => void heartbeats.set(heartbeat.server, heartbeat);
  const subscription = subscribeJson(nats, subjectsOf(environment).servers, ServerHeartbeat, receive);
  await sleep(LISTEN_MS);
  const everyMsMost = Math.max(0, ...[...heartbeats.values()].map(({ everyMs = 0 }) => everyMs));
  await sleep(Math.max(0, LISTEN_BEATS * everyMsMost - LISTEN_MS));
  subscription.unsubscribe();
  return [...heartbeats.values()].sort((a, b) => (a.server < b.server ? -1 : 1));
}

function placed(nats: NatsConnection, { environment }: Where): PlacementAccess {
  return { nats, subjects: subjectsOf(environment) };
}

async function read<Entry>(
  nats: NatsConnection,
  config: OfRoom,
  name: string,
  room: RoomKey,
  schema: z.ZodType<Entry>,
): Promise<Entry | undefined> {
  return readEntry(await bucketOf(placed(nats, config), name), room, schema);
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
