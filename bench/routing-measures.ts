/**
 * Rooms on real gateways behind HAProxy, with the routing key and without: where their members are, according to the
 * owners of the rooms, and what edits and cursors cost NATS and every process. Every member must receive every edit.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { decodeJson, encodeJson } from "../shared/bus/json-messages.ts";
import { RoomReport } from "../shared/bus/fleet-messages.ts";
import { inboxOf } from "../shared/bus/permissions.ts";
import { Tag } from "../shared/bus/record.ts";
import { roomOfSubject, subjectsOf } from "../shared/bus/subjects.ts";
import { type RoomId, type RoomKey, roomKey, type TenantId } from "../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { socketUrl } from "../client/options.ts";
import { type RunningBalancer, startBalancer } from "../deploy/balancer/start-balancer.ts";
import { claimFreePorts } from "../engines/free-port.ts";
import { eventually } from "../test/system/eventually.ts";
import { BALANCE_FACTOR, type Balancing } from "./balancer-model.ts";
import { memberOrder, type RoomSeats, seatArrivals } from "./gateways-of-rooms.ts";
import type { Seat } from "./load/enter.ts";
import type { PeersLoad, PeersMotion } from "./load/peers-load.ts";
import { Worker } from "./load/worker.ts";
import { natsTraffic, type NatsTraffic, roleOfConnection } from "./nats-traffic.ts";
import { cpuBetween, type CpuByRole, cpuByRole, cpuOfMachine } from "./server-usage.ts";
import { startCoroom } from "./systems/coroom.ts";

type RoutedRoomsOptions = {
  readonly gateways: number;
  /** Members of each room. All of them edit and move. */
  readonly sizes: readonly number[];
  readonly editsPerSecond: number;
  readonly cursorsPerSecond: number;
  readonly seconds: number;
  /** Without a warm-up, and with patience for a busy machine. */
  readonly small: boolean;
};
/** Rates are for each second. */
export type RoutedLeg = {
  /** By the numbers of gateways in HAProxy: as the owners of the rooms report, and by the model. */
  readonly seats: RoomSeats;
  readonly predicted: RoomSeats;
  readonly editsPerSecond: number;
  /** While nobody edits or moves. */
  readonly quiet: Observed;
  readonly busy: Observed;
  /** While busy, in cores. `load` and `others` are no servers. */
  readonly cpu: CpuByRole;
};
type RoutedRound = Readonly<Record<Balancing, RoutedLeg>>;
type Observed = { readonly traffic: NatsTraffic; readonly sent: readonly SentByRoom[] };
/** Messages to all gateways of a room: records, and announcements of its head and whether it is saved. */
type SentByRoom = { readonly records: number; readonly announcements: number };

const STOP_MS_MAX = 5_000;
/** HAProxy needs two descriptors for each connection, and some for itself. */
const CONNECTIONS_MAX = 8_000;
const ANSWER_MS_MAX = 5_000;
const WARM_MS = 5_000;
/** Owners announce the heads of their rooms for three seconds after the last edit or cursor. */
const SETTLE_MS = 5_000;
const QUIET_MS_MAX = 10_000;
const TENANT = "default" as TenantId;

type Coroom = Awaited<ReturnType<typeof startCoroom>>;
type Running = {
  readonly coroom: Coroom;
  readonly balancer: RunningBalancer;
  readonly load: Worker<PeersLoad>;
  readonly readTraffic: () => Promise<NatsTraffic>;
  readonly readSent: (rooms: readonly RoomKey[]) => readonly SentByRoom[];
  /** Of each gateway, by its number in HAProxy. */
  readonly gatewayIds: readonly string[];
  readonly report: Report;
};
/** From the owner of the room. */
type Report = (room: string) => Promise<RoomReport | undefined>;

/** Measures the legs one after the other in one Coroom, each with new rooms. */
export async function measureRoutedRounds(options: RoutedRoomsOptions, rounds: number): Promise<readonly RoutedRound[]> {
  const stops: (() => Promise<void>)[] = [];
  try {
    const running = await startBehindBalancer(options, stops);
    const measured: RoutedRound[] = [];
    for (let round = 1; round <= rounds; round++) {
      // The kinds alternate, because connections of the leg before may not have ended: HAProxy counts each kind separately.
      const byKey = await measureLeg(running, options, "by key", `key-${round}`);
      measured.push({ "by key": byKey, "by load": await measureLeg(running, options, "by load", `load-${round}`) });
    }
    return measured;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** `stops` receives what ends each started part. */
async function startBehindBalancer({ gateways, small }: RoutedRoomsOptions, stops: (() => Promise<void>)[]): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), "coroom-routing-"));
  stops.push(async () => rmSync(folder, { recursive: true, force: true }));
  const [natsMonitorPort = 0] = await claimFreePorts(1, "127.0.0.1");
  const coroom = await startCoroom({ gateways, natsMonitorPort, small });
  stops.push(() => coroom.stop());
  const hosts = coroom.gateways.map((url) => new URL(url).host);
  const balancer = await startBalancer(hosts, folder, CONNECTIONS_MAX);
  stops.push(async () => void (await balancer.process.stop(STOP_MS_MAX)));
  const inboxPrefix = inboxOf(coroom.environment, "operator");
  const nats = await connectNats({ servers: coroom.natsUrl, name: OBSERVER, inboxPrefix });
  stops.push(() => closeNats(nats));
  const load = new Worker<PeersLoad>("peers-load");
  stops.push(() => load.end());
  const report: Report = (room) => askOwner(nats, coroom.environment, room);
  return {
    coroom,
    balancer,
    load,
    report,
    readSent: countSent(nats, coroom.environment),
    readTraffic: () => natsTraffic(natsMonitorPort, groupOf),
    gatewayIds: await idsOfGateways(coroom, load, report),
  };
}

/** The group of the bench's own connection. */
export const OBSERVER = "bench";

/** Presence has NATS connections of its own. */
function groupOf(name: string): string {
  return name.endsWith(" presence") ? `${roleOfConnection(name)} presence` : roleOfConnection(name);
}

async function measureLeg(running: Running, options: RoutedRoomsOptions, balancing: Balancing, name: string): Promise<RoutedLeg> {
  const { coroom, balancer, load } = running;
  const { sizes, gateways, editsPerSecond, cursorsPerSecond, seconds, small } = options;
  const rooms = sizes.map((_, room) => `${name}-room-${room}`);
  const arrivals = memberOrder(sizes);
  await load.call("open", { name: "coroom", seats: await seatsBehind(running, rooms, sizes, balancing), arrivals });
  if (readFileSync(balancer.logFile, "latin1").includes(" is DOWN"))
    throw new Error("a gateway did not answer HAProxy's health checks in time. Repeat the run while the machine is less busy");

  const motion: PeersMotion = { writers: Math.max(...sizes), editsPerSecond, cursorsPerSecond, ms: seconds * 1_000, seed: 1 };
  const rest: PeersMotion = { ...motion, editsPerSecond: 0, cursorsPerSecond: 0 };
  if (!small) {
    await load.call("drive", { ...motion, ms: WARM_MS });
    await load.call("drive", { ...rest, ms: SETTLE_MS });
  }
  const quiet = await drive(running, rooms, { ...rest, ms: Math.min(rest.ms, QUIET_MS_MAX) });
  const servers = [...coroom.processes, { role: "haproxy", pid: balancer.process.pid }];
  const [cpuBefore, machineBefore] = [cpuByRole(servers), cpuOfMachine()];
  const busy = await drive(running, rooms, motion);
  const cpu = { ...cpuBetween(cpuBefore, cpuByRole(servers)), load: busy.loadCpuSeconds };
  const others = cpuOfMachine() - machineBefore - Object.values(cpu).reduce((sum, used) => sum + used, 0);
  const leg: RoutedLeg = {
    seats: await seatsOfRooms(running, rooms, sizes),
    predicted: seatArrivals(rooms, arrivals, balancing, { gateways, balanceFactor: BALANCE_FACTOR }),
    editsPerSecond: busy.editsSent * busy.perSecond,
    quiet: quiet.observed,
    busy: busy.observed,
    cpu: Object.fromEntries(Object.entries({ ...cpu, others }).map(([role, used]) => [role, used * busy.perSecond])),
  };
  await load.call("close", undefined as never);
  return leg;
}

/** Returns when every member has every edit. */
async function drive({ load, readTraffic, readSent }: Running, rooms: readonly string[], motion: PeersMotion) {
  const keys = rooms.map((room) => roomKey(TENANT, room as RoomId));
  const [traffic, sent, from] = [await readTraffic(), readSent(keys), performance.now()];
  const figures = await load.call("drive", motion);
  const perSecond = 1_000 / (performance.now() - from);
  const observed: Observed = {
    traffic: trafficBetween(traffic, await readTraffic(), perSecond),
    sent: readSent(keys).map(({ records, announcements }, room) => ({
      records: (records - sent[room]!.records) * perSecond,
      announcements: (announcements - sent[room]!.announcements) * perSecond,
    })),
  };
  return { ...figures, perSecond, observed };
}

/** Counts what owners and the log publish for the gateways of each room, whatever their number. */
function countSent(nats: NatsConnection, environment: string): Running["readSent"] {
  const counts = new Map<RoomKey, { records: number; announcements: number }>();
  nats.subscribe(subjectsOf(environment).editsOut("*.*" as RoomKey), {
    callback: (_, { subject, data }) => {
      const room = roomOfSubject(subject)!;
      const ofRoom = counts.get(room) ?? { records: 0, announcements: 0 };
      counts.set(room, ofRoom);
      if (data[0] === Tag.editsRecord) ofRoom.records += 1;
      else ofRoom.announcements += 1;
    },
  });
  return (rooms) => rooms.map((room) => ({ ...(counts.get(room) ?? { records: 0, announcements: 0 }) }));
}

function seatsBehind(
  { coroom, balancer }: Running,
  rooms: readonly string[],
  sizes: readonly number[],
  balancing: Balancing,
): Promise<readonly (readonly Seat[])[]> {
  const addressOf = (room: string): string =>
    balancing === "by key" ? socketUrl({ socket: `${balancer.url}/`, http: "" }, room, 0) : balancer.url;
  const ofRoom = (room: string, size: number): Promise<Seat[]> =>
    Promise.all(Array.from({ length: size }, (_, member) => seatOf(coroom, addressOf(room), room, member)));
  return Promise.all(rooms.map((room, index) => ofRoom(room, sizes[index]!)));
}

async function seatOf(coroom: Coroom, gateway: string, room: string, member: number): Promise<Seat> {
  return { gateway, room, token: await coroom.token(`member-${member}`), clientKey: `member-${String(member).padStart(9, "0")}` };
}

function trafficBetween(before: NatsTraffic, after: NatsTraffic, perSecond: number): NatsTraffic {
  return Object.fromEntries(
    Object.entries(after).map(([group, counts]) => {
      const rate = (name: keyof typeof counts): number => (counts[name] - (before[group]?.[name] ?? 0)) * perSecond;
      return [
        group,
        { toNats: rate("toNats"), fromNats: rate("fromNats"), bytesToNats: rate("bytesToNats"), bytesFromNats: rate("bytesFromNats") },
      ];
    }),
  );
}

/** A gateway names itself in the report of a room that only it has. */
async function idsOfGateways(coroom: Coroom, load: Worker<PeersLoad>, report: Report): Promise<readonly string[]> {
  const scouts = await Promise.all(coroom.gateways.map((url, index) => seatOf(coroom, url, `scout-${index}`, 0)));
  await load.call("open", { name: "coroom", seats: scouts.map((seat) => [seat]) });
  const ids = await Promise.all(scouts.map(async ({ room }) => [...(await membersByGateway(report, room, 1)).keys()][0]!));
  await load.call("close", undefined as never);
  return ids;
}

function seatsOfRooms({ gatewayIds, report }: Running, rooms: readonly string[], sizes: readonly number[]): Promise<RoomSeats> {
  return Promise.all(
    rooms.map(async (room, index) => {
      const members = await membersByGateway(report, room, sizes[index]!);
      return new Map([...members].map(([id, count]) => [gatewayIds.indexOf(id), count]));
    }),
  );
}

/** As soon as the owner knows all `members`. */
async function membersByGateway(report: Report, room: string, members: number): Promise<ReadonlyMap<string, number>> {
  let found = new Map<string, number>();
  await eventually(`the owner of ${room} knows its ${members} members`, async () => {
    found = new Map(Object.entries((await report(room))?.gateways ?? {}).filter(([, count]) => count > 0));
    return [...found.values()].reduce((sum, count) => sum + count, 0) === members;
  });
  return found;
}

async function askOwner(nats: NatsConnection, environment: string, room: string): Promise<RoomReport | undefined> {
  const question = encodeJson({ room: roomKey(TENANT, room as RoomId) });
  const answer = await nats.request(subjectsOf(environment).askRooms, question, { timeout: ANSWER_MS_MAX });
  return decodeJson(RoomReport, answer.data);
}
