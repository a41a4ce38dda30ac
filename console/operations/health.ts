/** Assesses the state of the system: returns all problems, the worst first, each with its remedy. */

import type {
  FleetAnswer,
  FleetGateway,
  FleetGatewayState,
  FleetProcess,
  HealthTone,
  ListedRoomRow,
  ListedTakeover,
  RoomPageAnswer,
} from "./answers.ts";
import { bytes, clockTime, count, counted, percent, shortName, droppedAt, someOf } from "./format.ts";
import { aliveIn, type EventRow, TAKEOVER_MS_MAX } from "./event-rows.ts";
import type { PollState } from "./polling.ts";

type HealthProblem = { readonly tone: "warning" | "error"; readonly text: string };
type HealthVerdict = {
  readonly tone: HealthTone;
  readonly title: string;
  readonly facts: readonly string[];
  readonly problems: readonly HealthProblem[];
};

/** A higher share needs attention: the rooms of a lost server move to the others. */
const USED_SHARE_MAX = 0.8;
/**
 * Time for which a lost process or a returned server is reported, the same as for lost servers. The clocks of two
 * machines are compared, so it is approximate.
 */
const LOST_MS_MAX = 10 * 60_000;

const STATES: Readonly<Record<Exclude<FleetGatewayState, "ready">, HealthProblem>> = {
  "degraded": { tone: "error", text: "does not reach NATS. Check the NATS servers and the network" },
  "misconfigured": { tone: "error", text: "has a different COROOM_LOG_PARTITIONS than the deployment. Its log shows the value to set" },
  "slow": { tone: "warning", text: "delivers updates late. New clients connect to other gateways until it has caught up" },
  "draining": { tone: "warning", text: "is draining. Its clients move to other gateways" },
  "log-full": { tone: "error", text: "is not ready, because no room server can store edits" },
};

/** Assesses the last answers, and whether they are current. */
export function verdictOf(
  fleet: FleetAnswer,
  page: RoomPageAnswer | undefined,
  reach: PollState,
  takeovers: readonly ListedTakeover[],
  rows: readonly EventRow[] = [],
): HealthVerdict {
  const problems =
    reach.state === "lost"
      ? [unreached(reach.since)]
      : fleet.reachesNats
        ? [
            ...problemsOfAll(fleet, page),
            ...ongoing(fleet, rows),
            ...problemsOfLost(fleet, takeovers, rows),
            ...problemsOfReturned(fleet, takeovers, rows),
          ]
        : [...problemsOfDisk(fleet), NO_NATS];
  problems.sort((a, b) => Number(b.tone === "error") - Number(a.tone === "error"));
  const tone: HealthTone = problems[0]?.tone ?? "good";
  return {
    tone,
    title: reach.state === "lost" ? "No answer from the gateway" : TITLES[tone],
    facts: [...factsOf(fleet, page), ...recentProblems(fleet, rows)],
    problems,
  };
}

const NO_NATS: HealthProblem = {
  tone: "error",
  text: "This gateway does not reach NATS. Its data about rooms and servers is out of date, and edits wait. Check the NATS servers and the network.",
};

function unreached(since: Date): HealthProblem {
  const text = `The gateway of this page has not answered since ${clockTime(since)}. The data below is out of date. Open the console of another gateway.`;
  return { tone: "error", text };
}

/** Causes before their effects: a full disk makes room servers refuse edits, and these make gateways unready. */
function problemsOfAll(fleet: FleetAnswer, page: RoomPageAnswer | undefined): HealthProblem[] {
  return [
    ...problemsOfDisk(fleet),
    ...problemsOfStorage(fleet),
    ...problemsOfServers(fleet),
    ...problemsOfFleet(fleet),
    ...problemsOfServices(fleet),
    ...problemsOfRedis(fleet),
    ...fleet.gateways.flatMap(problemsOfGateway),
    ...problemsOfStrangers(fleet),
    ...problemsOfVersions(fleet),
    ...problemsOfRooms(page),
  ];
}

/** The same as `coroom doctor`. */
const DISK_FREE_BYTES_MIN = 256 * 1024 * 1024;

function problemsOfDisk({ diskFreeBytes }: FleetAnswer): HealthProblem[] {
  if (diskFreeBytes === undefined || diskFreeBytes >= DISK_FREE_BYTES_MIN) return [];
  const text = `The disk with the data folder has only ${bytes(diskFreeBytes)} free. On a full disk nats-server and redis-server store nothing. Free space now.`;
  return [{ tone: "error", text }];
}

/** Problems that only events show. An episode of a process that has gone has no end. */
function ongoing(fleet: FleetAnswer, rows: readonly EventRow[]): HealthProblem[] {
  const isAlive = aliveIn(fleet) ?? (() => true);
  const since = Date.parse(fleet.at) - LOST_MS_MAX;
  return rows.flatMap(({ tone, what, why, at, until, by, isForVerdict, isMissing }): HealthProblem[] => {
    const isLost = isMissing === true && Date.parse(at) >= since;
    if (!isLost && !(isForVerdict === true && until === "now" && isAlive(by))) return [];
    const text = `${what} ${isLost ? "at" : "since"} ${clockTime(new Date(at))}: ${why}.`;
    return [{ tone: tone === "error" ? "error" : "warning", text }];
  });
}

const TITLES: Readonly<Record<HealthTone, string>> = {
  good: "All is well",
  calm: "All is well",
  warning: "Needs attention",
  error: "Something is wrong",
};

const RECENT_MS = 3_600_000;

/** So that nobody takes "All is well" for "nothing happened". */
function recentProblems({ at }: FleetAnswer, rows: readonly EventRow[]): string[] {
  const since = Date.parse(at) - RECENT_MS;
  const recent = rows.filter((row) => row.topic === "problem" && Date.parse(row.at) >= since);
  return recent.length === 0
    ? []
    : [`${counted(recent.length, "problem")} in the last hour, the last at ${clockTime(new Date(recent[0]!.at))}`];
}

function factsOf({ servers, gateways, placement, services, processes = [] }: FleetAnswer, page: RoomPageAnswer | undefined): string[] {
  const connections = gateways.reduce((sum, gateway) => sum + gateway.connections, 0);
  const ready = gateways.filter(({ state }) => state === "ready").length;
  return [
    `${ready} of ${counted(gateways.length, "gateway")} ready`,
    counted(servers.length, "room server"),
    placement.leader === undefined ? "no placement leader" : "1 placement leader",
    counted(services.documents, "document service"),
    services.leaderboards === 0 ? "no leaderboard" : counted(services.leaderboards, "leaderboard"),
    counted(connections, "connection"),
    ...versionsOf(processes),
    ...(page === undefined
      ? []
      : [
          counted(
            servers.reduce((sum, { rooms }) => sum + rooms, 0),
            "open room",
          ),
        ]),
  ];
}

/** Several versions are a problem, which names them. */
function versionsOf(processes: readonly FleetProcess[]): string[] {
  const versions = new Set(processes.map(({ version }) => version));
  const [version] = versions;
  return versions.size === 1 && version !== undefined ? [`version ${version}`] : [];
}

function problemsOfFleet({ servers, gateways, placement }: FleetAnswer): HealthProblem[] {
  const problems: HealthProblem[] = [];
  if (servers.length === 0)
    problems.push({
      tone: "error",
      text: "No room server sends heartbeats, so nothing can be edited. Start one, or check whether it reaches NATS.",
    });
  else if (servers.every(({ draining }) => draining))
    problems.push({ tone: "error", text: "Every room server is draining, so no room gets an owner. Start another room server." });
  if (!gateways.some(({ state }) => state === "ready"))
    problems.push({
      tone: "error",
      text: `No gateway is ready, so no new client can connect. ${gateways.length === 0 ? "Start a gateway." : "The reason of each is named here."}`,
    });
  if (placement.leader === undefined && problemsOfStorage({ servers }).length === 0)
    // A leader cannot renew its lease while nothing is stored.
    problems.push({
      tone: "warning",
      text: "No placement leader: rooms keep running, but no room is moved or gets a replica. Start placement, or check its log.",
    });
  return problems;
}

/** A deployment needs document services; leaderboards are optional. */
function problemsOfServices({ services }: FleetAnswer): HealthProblem[] {
  if (services.documents > 0) return [];
  const text = "No document service sends heartbeats, so clients that open a document wait. Start one, or check whether it reaches NATS.";
  return [{ tone: "error", text }];
}

const CHECK_REDIS = "Check Redis and its disk, the network and COROOM_REDIS_URL.";

/** Rooms and edits need no Redis. Each process reports its own Redis connection. */
function problemsOfRedis({ gateways, services }: FleetAnswer): HealthProblem[] {
  const { leaderboards, leaderboardsWithoutRedis } = services;
  const cutOff = gateways.filter(({ reachesRedis }) => reachesRedis === false).length;
  const problems: HealthProblem[] = [];
  if (leaderboardsWithoutRedis > 0)
    problems.push({
      tone: "warning",
      text: `${ofAll(leaderboardsWithoutRedis, leaderboards, "leaderboard")} not get answers from Redis: boards are not updated. They catch up when Redis is back. ${CHECK_REDIS}`,
    });
  if (cutOff > 0)
    problems.push({
      tone: "warning",
      text: `${ofAll(cutOff, gateways.length, "gateway")} not get answers from Redis: a new ban lasts only while a gateway that knows it runs. Bans are stored when Redis is back. ${CHECK_REDIS}`,
    });
  return problems;
}

/** "The leaderboard does", "1 of 2 gateways does", "2 of 2 gateways do". */
function ofAll(some: number, all: number, one: string): string {
  return all === 1 ? `The ${one} does` : `${count(some)} of ${counted(all, one)} ${some === 1 ? "does" : "do"}`;
}

function problemsOfGateway({ gateway, state, shedLevel }: FleetGateway): HealthProblem[] {
  const name = `Gateway ${shortName(gateway)}`;
  return [
    ...(state === "ready" ? [] : [{ tone: STATES[state].tone, text: `${name} ${STATES[state].text}.` }]),
    ...(shedLevel === 0 ? [] : [{ tone: "warning" as const, text: `${name} sheds load: it drops ${droppedAt(shedLevel)}.` }]),
  ];
}

function problemsOfServers({ servers }: FleetAnswer): HealthProblem[] {
  return servers.flatMap(({ server, used, draining, rooms }) => {
    const drained = rooms > 0 ? `is draining: ${counted(rooms, "room")} left` : "is drained. You can stop it";
    return [
      ...(used > USED_SHARE_MAX ? [{ tone: "warning" as const, text: `${shortName(server)} uses ${percent(used)} of its budget.` }] : []),
      ...(draining ? [{ tone: "warning" as const, text: `${shortName(server)} ${drained}.` }] : []),
    ];
  });
}

/** A full disk has the same effect on all room servers. */
function problemsOfStorage({ servers }: Pick<FleetAnswer, "servers">): HealthProblem[] {
  const obstacles = new Set(servers.flatMap(({ logObstacle = [] }) => logObstacle));
  return [...obstacles].map((obstacle) => {
    const names = servers.filter(({ logObstacle }) => logObstacle === obstacle).map(({ server }) => shortName(server));
    const who = names.length === 1 ? `${names[0]} refuses` : `${counted(names.length, "room server")} refuse`;
    return { tone: "error", text: `${who} edits: ${obstacle}.` };
  });
}

/** A process that was paused or without NATS did not refuse the start of the other one. */
function problemsOfStrangers({ processes = [] }: FleetAnswer): HealthProblem[] {
  const byVersion = new Map<number, string[]>();
  for (const { instance, busVersion = 1, cannotWorkWith = [] } of processes)
    if (cannotWorkWith.length > 0) byVersion.set(busVersion, [...(byVersion.get(busVersion) ?? []), shortName(instance)]);
  if (byVersion.size === 0) return [];
  const versions = [...byVersion].sort(([a], [b]) => a - b).map(([version, instances]) => `bus version ${version} (${someOf(instances)})`);
  const text = `Processes run that cannot work together: ${versions.join(", ")}. Stop or replace the earlier ones now.`;
  return [{ tone: "error", text }];
}

/** An upgrade is unfinished, or a process was forgotten. */
function problemsOfVersions({ processes = [] }: FleetAnswer): HealthProblem[] {
  const byVersion = new Map<string, string[]>();
  for (const { instance, version = "0.2.0 or earlier" } of processes)
    byVersion.set(version, [...(byVersion.get(version) ?? []), shortName(instance)]);
  if (byVersion.size < 2) return [];
  const versions = [...byVersion].map(([version, instances]) => `${version} (${someOf(instances)})`);
  return [{ tone: "warning", text: `Several versions run together: ${versions.join(", ")}. Finish the upgrade.` }];
}

/**
 * Reports servers that were lost recently and not replaced. Rooms that other servers took are counted without their
 * dates, because the clocks of the servers differ.
 */
function problemsOfLost(
  { serversLost = [] }: FleetAnswer,
  takeovers: readonly ListedTakeover[],
  rows: readonly EventRow[],
): HealthProblem[] {
  const replaced = new Set<string>(rows.flatMap((row) => row.replaced ?? []));
  const missing = serversLost.filter(({ server }) => !replaced.has(server));
  return missing.map(({ server, rooms, at }) => {
    const taken = Math.min(rooms, roomsOf(takeovers.filter(({ from }) => from === server)));
    const had = rooms === 0 ? "It had no rooms" : `Other servers have taken over ${count(taken)} of its ${counted(rooms, "room")}`;
    const rest = taken < rooms ? ", and take over the rest when clients need them" : "";
    const text = `Room server ${shortName(server)} stopped sending heartbeats at ${clockTime(new Date(at))}. ${had}${rest}. Check its machine and its log, and start another room server.`;
    return { tone: "warning", text };
  });
}

/** Takeovers follow an outage of NATS within this time. */
const AFTER_OUTAGE_MS = 10_000;

/**
 * Reports servers that send heartbeats again and lost rooms recently, unless NATS was the cause. A gateway that lost NATS
 * alone has lost its own connection.
 */
function problemsOfReturned(
  { at, servers, gateways }: FleetAnswer,
  takeovers: readonly ListedTakeover[],
  rows: readonly EventRow[],
): HealthProblem[] {
  const outages = rows.filter(({ gatewaysWithoutNats = 0 }) => gatewaysWithoutNats * 2 > gateways.length);
  const isOfOutage = (begun: number): boolean =>
    outages.some(({ at: from, until = from }) => begun >= Date.parse(from) && begun <= Date.parse(until) + AFTER_OUTAGE_MS);
  const since = Date.parse(at) - LOST_MS_MAX;
  return servers.flatMap(({ server }): HealthProblem[] => {
    const taken = takeovers.filter(
      ({ from, at: begun }) => from === server && Date.parse(begun) >= since && !isOfOutage(Date.parse(begun)),
    );
    if (taken.length === 0) return [];
    const last = Math.max(...taken.map(({ at: begun }) => Date.parse(begun)));
    const rooms = roomsOf(taken.filter(({ at: begun }) => Date.parse(begun) >= last - TAKEOVER_MS_MAX));
    const what = rooms === 1 ? "one of its rooms" : `${count(rooms)} of its rooms`;
    const text = `Room server ${shortName(server)} was unreachable and is back. Other servers took over ${what} at ${clockTime(new Date(last))}. Check its CPU load and its network connection to NATS.`;
    return [{ tone: "warning", text }];
  });
}

function roomsOf(takeovers: readonly ListedTakeover[]): number {
  return takeovers.reduce((sum, { count: rooms }) => sum + rooms, 0);
}

function problemsOfRooms(page: RoomPageAnswer | undefined): HealthProblem[] {
  if (page === undefined) return [];
  return [
    ...(page.servers < page.serversKnown
      ? [
          {
            tone: "error" as const,
            text: `${count(page.serversKnown - page.servers)} of ${counted(page.serversKnown, "room server")} did not answer, so their rooms are missing below.`,
          },
        ]
      : []),
    ...throttledTenants(page),
  ];
}

/** A busy tenant is named with its rooms. A room that its members have left stays throttled for some seconds, and concerns nobody. */
function throttledTenants({ rooms }: RoomPageAnswer): HealthProblem[] {
  const byTenant = new Map<string, ListedRoomRow[]>();
  for (const room of rooms.filter(({ heldBack, participants }) => heldBack > 0 && participants > 0)) {
    const key = `${room.server} ${room.tenant}`;
    byTenant.set(key, [...(byTenant.get(key) ?? []), room]);
  }
  return [...byTenant.values()].map((throttled) => {
    const { server, tenant } = throttled[0]!;
    const names = someOf(throttled.map(({ room }) => room));
    const use = throttled.length === 1 ? "It used" : "They used";
    const text = `${shortName(server)} throttles ${counted(throttled.length, "room")} of the tenant ${tenant}: ${names}. ${use} most of its time while it was late.`;
    return { tone: "warning", text };
  });
}
