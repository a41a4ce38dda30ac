/** Where rooms are and why, asked and changed from a terminal. It needs NATS and the room servers; placement only for what is planned. */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstream } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { z } from "zod";

import { decodeJson, encodeJson } from "../shared/bus/json-messages.ts";
import { OrderReply, ownerReasonIn, PlannedRoom, RoomEntry, RoomPin, ServerHeartbeat, type ServerOrder } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { SettingError, type Values } from "../shared/config.ts";
import { parseRoomId, parseTenantId, roomKey, type RoomKey, type ServerId, type UnixMillis } from "../shared/ids.ts";
import { kvBucket } from "../shared/io/copies.ts";
import { closeNats, type NatsConnection } from "../shared/io/nats.ts";
import { askNats } from "../shared/io/nats-ask.ts";
import type { Say } from "./command.ts";
import { connectOperator } from "./ops.ts";
import type { opsDrainSettings, opsExplainSettings, opsMoveSettings, opsPinSettings, whereSettings } from "./ops-settings.ts";

type Where = Values<typeof whereSettings>;
type OfRoom = Values<typeof opsExplainSettings>;

/** Whoever lives has been heard by then, unless servers say that they speak less often: then so many of their heartbeats later. */
const LISTEN_MS = 800;
const LISTEN_BEATS = 1.5;
/** A warm copy is made first. */
const MOVE_MS_MAX = 15_000;
const DRAIN_MS_MAX = 60_000;
const WRITTEN_DOWN_MS = 500;

export function showServers(config: Where, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const heartbeats = await listen(nats, config);
    for (const { server, rooms, draining, labels, load } of heartbeats) {
      const facts = [`rooms=${rooms}`, `used=${percent(load?.used ?? 0)}`, `host=${labels?.host ?? ""}`, ...(labels?.zone ? [`zone=${labels.zone}`] : []), ...(labels?.pool ? [`pool=${labels.pool}`] : []), ...(draining ? ["draining"] : [])];
      say([server, ...facts].join(" "));
      for (const { room, share } of load?.hot ?? []) say(`  ${room} takes ${percent(share)}`);
    }
    if (heartbeats.length === 0) say("no room server is heard: start one, or look whether COROOM_ENVIRONMENT and COROOM_NATS_URL are theirs");
  });
}

export function explainRoom(config: OfRoom, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const room = keyOf(config);
    const subjects = subjectsOf(config.environment);
    const [entry, planned, pin] = await Promise.all([
      read(nats, config, subjects.roomsBucket, room, RoomEntry),
      read(nats, config, subjects.planBucket, room, PlannedRoom),
      read(nats, config, subjects.pinsBucket, room, RoomPin),
    ]);
    const live = (await listen(nats, config)).map(({ server }) => server);
    const state = (server: ServerId): string => (live.includes(server) ? server : `${server}, which is not heard`);
    say(entry === undefined ? `${room} is open nowhere: whoever joins it next has it opened` : `${room} is owned by ${state(entry.owner)} (epoch ${entry.epoch})`);
    if (planned === undefined) say(entry === undefined ? "nothing is planned for it" : "it is where gateways found a server by the hash; nothing is planned for it yet");
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
    const room = keyOf(config);
    const subjects = subjectsOf(config.environment);
    const to = config.to as ServerId;
    const from = await orderOwner(nats, config, { kind: "hand-over", room, to, generation: 0 });
    if (from === to) return say(`${room} is on ${to} already`);
    const before = await read(nats, config, subjects.planBucket, room, PlannedRoom);
    const kept = before?.replica === to ? undefined : before?.replica;
    const reason = `an operator moved it from ${from}`;
    const planned: PlannedRoom = { owner: to, ...(kept === undefined ? {} : { replica: kept }), reason, ownerReason: reason, generation: before?.generation ?? 1, at: Date.now() as UnixMillis };
    await (await bucket(nats, config, subjects.planBucket)).put(room, encodeJson(planned));
    say(`${room} has moved from ${from} to ${to}`);
  });
}

/** Resolves when no room is left there. The server runs on, and takes none. One that is not heard may only be late, and have rooms still. */
export function drainServer(config: Values<typeof opsDrainSettings>, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    await order(nats, config, config.server as ServerId, { kind: "drain" });
    const until = performance.now() + DRAIN_MS_MAX;
    let heartbeat: ServerHeartbeat | undefined;
    for (let left = Number.NaN; performance.now() < until; left = heartbeat?.rooms ?? left) {
      heartbeat = (await listen(nats, config)).find(({ server }) => server === config.server);
      if (heartbeat?.rooms === 0) return say(`${config.server} has no rooms any more: it can be stopped`);
      if (heartbeat !== undefined && heartbeat.rooms !== left) say(`${config.server} has ${heartbeat.rooms} rooms`);
    }
    if (heartbeat === undefined) throw new SettingError(`${config.server} is not heard any more: if it has ended, its rooms are taken over by the servers with their warm copies`);
    throw new SettingError(`${config.server} still has rooms: is there another server that takes them?`);
  });
}

/** Without a pool and a host the pin is taken away. */
export function pinRoom(config: Values<typeof opsPinSettings>, say: Say): Promise<void> {
  return connected(config, async (nats) => {
    const room = keyOf(config);
    const pins = await bucket(nats, config, subjectsOf(config.environment).pinsBucket);
    const pin: RoomPin = { ...(config.pool === "" ? {} : { pool: config.pool }), ...(config.onHost === "" ? {} : { host: config.onHost }) };
    if (Object.keys(pin).length === 0) {
      await pins.delete(room);
      return say(`${room} is not pinned any more`);
    }
    await pins.put(room, encodeJson(pin));
    say(`${room} is pinned: ${JSON.stringify(pin)}; placement moves it with its next plan`);
  });
}

async function connected(config: Where, run: (nats: NatsConnection) => Promise<void>): Promise<void> {
  const nats = await connectOperator(config);
  try {
    await run(nats);
  } finally {
    await closeNats(nats);
  }
}

async function order(nats: NatsConnection, config: Where, server: ServerId, given: ServerOrder): Promise<void> {
  const reply = await ask(nats, config, server, given);
  if (reply?.kind !== "done") throw notDone(server, reply);
}

function ask(nats: NatsConnection, { environment }: Where, server: ServerId, given: ServerOrder): Promise<OrderReply | undefined> {
  return askNats(nats, subjectsOf(environment).order(server), given, OrderReply, MOVE_MS_MAX);
}

function notDone(server: ServerId, reply: OrderReply & { kind: "refused" } | undefined): SettingError {
  return new SettingError(reply?.reason ?? `${server} does not answer: coroom ops servers names those that live`);
}

/** Says who carried it out; the target itself where the room is there already. A room that has just come to somebody is written down a moment later: a refusal is asked about once more. */
async function orderOwner(nats: NatsConnection, config: OfRoom, given: ServerOrder & { kind: "hand-over" }): Promise<ServerId> {
  for (let asked: ServerId | undefined; ; ) {
    const entry = await read(nats, config, subjectsOf(config.environment).roomsBucket, given.room, RoomEntry);
    if (entry === undefined) throw new SettingError(`${given.room} is open nowhere: there is nothing to move`);
    if (asked !== undefined && entry.owner === given.to) return asked; // It was done, and only the answer was late.
    const reply = await ask(nats, config, entry.owner, given);
    if (reply?.kind === "done") return entry.owner;
    if (asked !== undefined) throw notDone(entry.owner, reply);
    asked = entry.owner;
    await sleep(WRITTEN_DOWN_MS);
  }
}

async function listen(nats: NatsConnection, { environment }: Where): Promise<ServerHeartbeat[]> {
  const heard = new Map<ServerId, ServerHeartbeat>();
  const subscription = nats.subscribe(subjectsOf(environment).servers, {
    callback: (error, msg) => {
      const heartbeat = error === null ? decodeJson(ServerHeartbeat, msg.data) : undefined;
      if (heartbeat !== undefined) heard.set(heartbeat.server, heartbeat);
    },
  });
  await sleep(LISTEN_MS);
  const everyMsMost = Math.max(0, ...[...heard.values()].map(({ everyMs = 0 }) => everyMs));
  await sleep(Math.max(0, LISTEN_BEATS * everyMsMost - LISTEN_MS));
  subscription.unsubscribe();
  return [...heard.values()].sort((a, b) => (a.server < b.server ? -1 : 1));
}

/** Created as placement would, where it has never run. */
function bucket(nats: NatsConnection, { logReplicas }: OfRoom, name: string): Promise<KV> {
  return kvBucket(jetstream(nats), name, { replicas: logReplicas });
}

async function read<Entry>(nats: NatsConnection, config: OfRoom, name: string, room: RoomKey, schema: z.ZodType<Entry>): Promise<Entry | undefined> {
  const entry = await (await bucket(nats, config, name)).get(room);
  return entry === null || entry.operation !== "PUT" ? undefined : decodeJson(schema, entry.value);
}

function keyOf({ tenant, room }: { tenant: string; room: string }): RoomKey {
  const [tenantId, roomId] = [parseTenantId(tenant), parseRoomId(room)];
  if (tenantId === undefined || roomId === undefined) throw new SettingError(`--tenant ${tenant} --room ${room} name no room: shared/wire/WIRE.md says what ids may hold (WIRE6)`);
  return roomKey(tenantId, roomId);
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
