/** Where rooms are and why, asked and changed from a terminal. It needs NATS and the room servers; placement only for what is planned. */

import { setTimeout as sleep } from "node:timers/promises";

import type { z } from "zod";

import { assertNever } from "../shared/assert.ts";
import { CheckpointEntry, isDeleted } from "../shared/bus/checkpoint.ts";
import { encodeJson } from "../shared/bus/json-messages.ts";
import { ownerReasonIn, PlannedRoom, RoomEntry, RoomPin, ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { SettingError, type Values } from "../shared/config.ts";
import { parseRoomId, parseTenantId, roomKey, type RoomKey, type ServerId } from "../shared/ids.ts";
import { closeNats, type NatsConnection } from "../shared/io/nats.ts";
import { hear } from "../shared/io/nats-hear.ts";
import { bucketOf, moveRoomTo, orderServer, type Placed, readEntry } from "../shared/io/room-moves.ts";
import type { Say } from "./command.ts";
import { connectOperator } from "./ops.ts";
import type { opsDrainSettings, opsExplainSettings, opsMoveSettings, opsPinSettings, whereSettings } from "./ops-settings.ts";

type Where = Values<typeof whereSettings>;
type OfRoom = Values<typeof opsExplainSettings>;

/** Whoever lives has been heard by then, unless servers say that they speak less often: then so many of their heartbeats later. */
const LISTEN_MS = 800;
const LISTEN_BEATS = 1.5;
const DRAIN_MS_MAX = 60_000;

export function showServers(config: Where, say: Say): Promise<void> {
  return connected(config, async (nats) => {
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
      say([server, ...facts].join(" "));
      for (const { room, share } of load?.hot ?? []) say(`  ${room} takes ${percent(share)}`);
    }
    if (heartbeats.length === 0)
      say("no room server is heard: start one, or look whether COROOM_ENVIRONMENT and COROOM_NATS_URL are theirs");
  });
}

export function explainRoom(config: OfRoom, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const room = keyOf(config);
    const subjects = subjectsOf(config.environment);
    const [checkpoint, entry, planned, pin] = await Promise.all([
      read(nats, config, subjects.checkpointsBucket, room, CheckpointEntry),
      read(nats, config, subjects.roomsBucket, room, RoomEntry),
      read(nats, config, subjects.planBucket, room, PlannedRoom),
      read(nats, config, subjects.pinsBucket, room, RoomPin),
    ]);
    if (isDeleted(checkpoint)) return say(`${room} is deleted: whoever joins it is refused, and its name is not given again`);
    const live = (await listen(nats, config)).map(({ server }) => server);
    const state = (server: ServerId): string => (live.includes(server) ? server : `${server}, which is not heard`);
    say(
      entry === undefined
        ? `${room} is open nowhere: whoever joins it next has it opened`
        : `${room} is owned by ${state(entry.owner)} (epoch ${entry.epoch})`,
    );
    if (planned === undefined)
      say(
        entry === undefined
          ? "nothing is planned for it"
          : "it is where gateways found a server by the hash; nothing is planned for it yet",
      );
    else {
      say(`${new Date(planned.at).toISOString()} plan ${planned.generation}: ${planned.reason}`);
      const ownerReason = entry === undefined ? undefined : ownerReasonIn(planned, entry.owner);
      if (ownerReason !== undefined && ownerReason !== planned.reason) say(`how it came there: ${ownerReason}`);
      say(planned.replica === undefined ? "nobody keeps a warm copy" : `a warm copy is kept by ${state(planned.replica)}`);
    }
    if (pin !== undefined) say(`it is pinned: ${JSON.stringify(pin)}`);
  });
}

export function moveRoom(config: Values<typeof opsMoveSettings>, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const [room, to] = [keyOf(config), config.to as ServerId];
    const outcome = await moveRoomTo(placed(nats, config), room, to);
    switch (outcome.kind) {
      case "moved":
        return say(outcome.from === to ? `${room} is on ${to} already` : `${room} has moved from ${outcome.from} to ${to}`);
      case "open-nowhere":
        throw new SettingError(`${room} is open nowhere: there is nothing to move`);
      case "refused":
        throw new SettingError(outcome.reason);
      case "silent":
        throw notAnswering(outcome.server);
      default:
        return assertNever(outcome);
    }
  });
}

/** Resolves when no room is left there. The server runs on, and takes none. One that is not heard may only be late, and have rooms still. */
export function drainServer(config: Values<typeof opsDrainSettings>, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const server = config.server as ServerId;
    const reply = await orderServer({ nats, subjects: subjectsOf(config.environment) }, server, { kind: "drain" });
    if (reply?.kind !== "done") throw reply === undefined ? notAnswering(server) : new SettingError(reply.reason);
    const until = performance.now() + DRAIN_MS_MAX;
    let heartbeat: ServerHeartbeat | undefined;
    for (let left = Number.NaN; performance.now() < until; left = heartbeat?.rooms ?? left) {
      heartbeat = (await listen(nats, config)).find(({ server }) => server === config.server);
      if (heartbeat?.rooms === 0) return say(`${config.server} has no rooms any more: it can be stopped`);
      if (heartbeat !== undefined && heartbeat.rooms !== left) say(`${config.server} has ${heartbeat.rooms} rooms`);
    }
    if (heartbeat === undefined)
      throw new SettingError(
        `${config.server} is not heard any more: if it has ended, its rooms are taken over by the servers with their warm copies`,
      );
    throw new SettingError(`${config.server} still has rooms: is there another server that takes them?`);
  });
}

/** Without a pool and a host the pin is taken away. One that no server is for would change nothing, and be a misspelt name. */
export function pinRoom(config: Values<typeof opsPinSettings>, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const room = keyOf(config);
    const pins = await bucketOf(placed(nats, config), subjectsOf(config.environment).pinsBucket);
    const toPool = config.pool === "" ? {} : { pool: config.pool };
    const toHost = config.onHost === "" ? {} : { host: config.onHost };
    const pin: RoomPin = { ...toPool, ...toHost };
    if (Object.keys(pin).length === 0) {
      await pins.delete(room);
      return say(`${room} is not pinned any more`);
    }
    await expectServerFor(pin, nats, config);
    await pins.put(room, encodeJson(pin));
    say(`${room} is pinned: ${JSON.stringify(pin)}; placement moves it with its next plan`);
  });
}

async function expectServerFor({ pool, host }: RoomPin, nats: NatsConnection, config: Where): Promise<void> {
  const labels = (await listen(nats, config)).map((heard) => heard.labels);
  if (labels.some((of) => (pool === undefined || of?.pool === pool) && (host === undefined || of?.host === host))) return;
  const asked = [...(pool === undefined ? [] : [`of the pool ${pool}`]), ...(host === undefined ? [] : [`on the host ${host}`])].join(" ");
  const pools = [...new Set(labels.flatMap((of) => of?.pool || []))].sort().join(", ") || "none";
  const hosts = [...new Set(labels.flatMap((of) => of?.host || []))].sort().join(", ") || "none";
  throw new SettingError(`no room server ${asked} is heard: start one first. Pools that are heard: ${pools}; hosts: ${hosts}`);
}

async function connected(config: Where, run: (nats: NatsConnection) => Promise<void>): Promise<void> {
  const nats = await connectOperator(config);
  try {
    await run(nats);
  } finally {
    await closeNats(nats);
  }
}

function notAnswering(server: ServerId): SettingError {
  return new SettingError(`${server} does not answer: coroom ops servers names those that live`);
}

async function listen(nats: NatsConnection, { environment }: Where): Promise<ServerHeartbeat[]> {
  const heard = new Map<ServerId, ServerHeartbeat>();
  const receive = (heartbeat: ServerHeartbeat): void => void heard.set(heartbeat.server, heartbeat);
  const subscription = hear(nats, subjectsOf(environment).servers, ServerHeartbeat, receive);
  await sleep(LISTEN_MS);
  const everyMsMost = Math.max(0, ...[...heard.values()].map(({ everyMs = 0 }) => everyMs));
  await sleep(Math.max(0, LISTEN_BEATS * everyMsMost - LISTEN_MS));
  subscription.unsubscribe();
  return [...heard.values()].sort((a, b) => (a.server < b.server ? -1 : 1));
}

function placed(nats: NatsConnection, { environment, logReplicas }: OfRoom): Placed {
  return { nats, subjects: subjectsOf(environment), replicas: logReplicas };
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

function keyOf({ tenant, room }: { tenant: string; room: string }): RoomKey {
  const [tenantId, roomId] = [parseTenantId(tenant), parseRoomId(room)];
  if (tenantId === undefined || roomId === undefined)
    throw new SettingError(`--tenant ${tenant} --room ${room} name no room: shared/wire/WIRE.md says what ids may hold (WIRE6)`);
  return roomKey(tenantId, roomId);
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
