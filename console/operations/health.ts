/** "Is all well?", for whoever was just woken: what is wrong, the worst first, and what to do about it. */

import type { Fleet, Gateway, GatewayState, RoomPage, Takeover, Tone } from "./answers.ts";
import { clockTime, count, counted, percent, shortName } from "./format.ts";
import { leftOut } from "./left-out.ts";
import type { Reach } from "./reach.ts";

export type Problem = { readonly tone: "warning" | "trouble"; readonly text: string };
export type Verdict = {
  readonly tone: Tone;
  readonly title: string;
  readonly facts: readonly string[];
  readonly problems: readonly Problem[];
};

/** More is worth a look: a server that is lost leaves its rooms to the others. */
const USED_MUCH = 0.8;
/** So long a server that was not reached, and is back, is spoken of: as long as gateways name those that are lost. By the dates of two machines, so more or less. */
const BACK_MS_MAX = 10 * 60_000;

const STATES: Readonly<Record<Exclude<GatewayState, "ready">, Problem>> = {
  degraded: { tone: "trouble", text: "does not reach NATS: look at the NATS servers and the way to them" },
  misconfigured: { tone: "trouble", text: "has another COROOM_LOG_PARTITIONS than the deployment: its log says which to set" },
  slow: { tone: "warning", text: "reaches its clients late: new ones go elsewhere until it has caught up" },
  draining: { tone: "warning", text: "is draining: its clients move to the others" },
};

/** Of what was told last, and of whether that is how things are now. */
export function verdictOf(fleet: Fleet, page: RoomPage | undefined, reach: Reach, takeovers: readonly Takeover[]): Verdict {
  const problems =
    reach.state === "lost"
      ? [unreached(reach.since)]
      : fleet.reachesNats
        ? [...problemsOfAll(fleet, page), ...problemsOfLost(fleet, takeovers), ...problemsOfBack(fleet, takeovers)]
        : [NO_NATS];
  problems.sort((a, b) => Number(b.tone === "trouble") - Number(a.tone === "trouble"));
  const tone: Tone = problems[0]?.tone ?? "good";
  return { tone, title: reach.state === "lost" ? "Nobody answers" : TITLES[tone], facts: factsOf(fleet, page), problems };
}

const NO_NATS: Problem = {
  tone: "trouble",
  text: "This gateway does not reach NATS: what it knows of rooms and servers is from before, and edits wait. Look at the NATS servers and the way to them.",
};

function unreached(since: Date): Problem {
  const text = `The gateway of this page has not answered since ${clockTime(since)}: what stands below is from before. Open the console of another.`;
  return { tone: "trouble", text };
}

function problemsOfAll(fleet: Fleet, page: RoomPage | undefined): Problem[] {
  return [
    ...problemsOfFleet(fleet),
    ...problemsOfServices(fleet),
    ...problemsOfRedis(fleet),
    ...fleet.gateways.flatMap(problemsOfGateway),
    ...problemsOfServers(fleet),
    ...problemsOfRooms(page),
  ];
}

const TITLES: Readonly<Record<Tone, string>> = {
  good: "All is well",
  calm: "All is well",
  warning: "Worth a look",
  trouble: "Something is wrong",
};

function factsOf({ servers, gateways, placement, services }: Fleet, page: RoomPage | undefined): string[] {
  const connections = gateways.reduce((sum, gateway) => sum + gateway.connections, 0);
  const ready = gateways.filter(({ state }) => state === "ready").length;
  return [
    `${ready} of ${counted(gateways.length, "gateway")} ready`,
    counted(servers.length, "room server"),
    placement.leader === undefined ? "no placement" : "placement leads",
    counted(services.documents, "document service"),
    services.leaderboards === 0 ? "no leaderboard" : counted(services.leaderboards, "leaderboard"),
    counted(connections, "connection"),
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

function problemsOfFleet({ servers, gateways, placement }: Fleet): Problem[] {
  const problems: Problem[] = [];
  if (servers.length === 0)
    problems.push({ tone: "trouble", text: "No room server is heard: nothing can be edited. Start one, or look whether it reaches NATS." });
  else if (servers.every(({ draining }) => draining))
    problems.push({ tone: "trouble", text: "Every room server is draining: no room finds an owner. Start another." });
  if (!gateways.some(({ state }) => state === "ready"))
    problems.push({ tone: "trouble", text: "No gateway is ready: nobody new can connect." });
  if (placement.leader === undefined)
    problems.push({ tone: "warning", text: "No placement leads: rooms run on, but none is moved and none gets a warm copy." });
  return problems;
}

/** Leaderboards may be left out of a deployment, document services not. */
function problemsOfServices({ services }: Fleet): Problem[] {
  if (services.documents > 0) return [];
  const text = "No document service is heard: whoever opens a document waits for it. Start one, or look whether it reaches NATS.";
  return [{ tone: "trouble", text }];
}

const LOOK_AT_REDIS = "Look at Redis, at the way to it and at COROOM_REDIS_URL.";

/** Rooms and edits need no Redis. Each role says for itself whether it reaches it. */
function problemsOfRedis({ gateways, services }: Fleet): Problem[] {
  const { leaderboards, leaderboardsWithoutRedis } = services;
  const cutOff = gateways.filter(({ reachesRedis }) => reachesRedis === false).length;
  const problems: Problem[] = [];
  if (leaderboardsWithoutRedis > 0)
    problems.push({
      tone: "warning",
      text: `${ofAll(leaderboardsWithoutRedis, leaderboards, "leaderboard")} not reach Redis: boards stand still, and are made up for once it is back. ${LOOK_AT_REDIS}`,
    });
  if (cutOff > 0)
    problems.push({
      tone: "warning",
      text: `${ofAll(cutOff, gateways.length, "gateway")} not reach Redis: bans hold for as long as a gateway runs that knows them, and are kept once it is back. ${LOOK_AT_REDIS}`,
    });
  return problems;
}

/** "The leaderboard does", "1 of 2 gateways does", "2 of 2 gateways do". */
function ofAll(some: number, all: number, one: string): string {
  return all === 1 ? `The ${one} does` : `${count(some)} of ${counted(all, one)} ${some === 1 ? "does" : "do"}`;
}

function problemsOfGateway({ gateway, state, shedLevel }: Gateway): Problem[] {
  const name = `Gateway ${shortName(gateway)}`;
  return [
    ...(state === "ready" ? [] : [{ tone: STATES[state].tone, text: `${name} ${STATES[state].text}.` }]),
    ...(shedLevel === 0 ? [] : [{ tone: "warning" as const, text: `${name} is behind and leaves out ${leftOut(shedLevel)}.` }]),
  ];
}

function problemsOfServers({ servers }: Fleet): Problem[] {
  return servers.flatMap(({ server, used, draining, rooms }) => [
    ...(used > USED_MUCH ? [{ tone: "warning" as const, text: `${shortName(server)} uses ${percent(used)} of its budget.` }] : []),
    ...(draining
      ? [
          {
            tone: "warning" as const,
            text:
              rooms > 0
                ? `${shortName(server)} is draining: ${counted(rooms, "room")} left.`
                : `${shortName(server)} is drained: it can be stopped.`,
          },
        ]
      : []),
  ]);
}

/** Servers that were lost lately, as gateways noticed. Who takes their rooms has a clock of its own: how many were taken goes by no date. */
function problemsOfLost({ serversLost = [] }: Fleet, takeovers: readonly Takeover[]): Problem[] {
  return serversLost.map(({ server, rooms, at }) => {
    const taken = Math.min(rooms, roomsOf(takeovers.filter(({ from }) => from === server)));
    const had = rooms === 0 ? "It had no room" : `Others have taken over ${count(taken)} of its ${counted(rooms, "room")}`;
    const rest = taken < rooms ? ", and take the rest as people need them" : "";
    const text = `Room server ${shortName(server)} fell silent at ${clockTime(new Date(at))}. ${had}${rest}. Look at its machine and its log, and start another.`;
    return { tone: "warning", text };
  });
}

/** Servers that are heard again and have lost rooms lately. */
function problemsOfBack({ at, servers }: Fleet, takeovers: readonly Takeover[]): Problem[] {
  const since = Date.parse(at) - BACK_MS_MAX;
  return servers.flatMap(({ server }): Problem[] => {
    const taken = takeovers.filter(({ from, at: begun }) => from === server && Date.parse(begun) >= since);
    if (taken.length === 0) return [];
    const rooms = roomsOf(taken);
    const what = rooms === 1 ? "a room of it was" : `${count(rooms)} rooms of it were`;
    const text = `Room server ${shortName(server)} was not reached, and is heard: ${what} taken over at ${clockTime(new Date(taken[0]!.at))}. Look whether it is short of CPU, and at the way to NATS.`;
    return [{ tone: "warning", text }];
  });
}

function roomsOf(takeovers: readonly Takeover[]): number {
  return takeovers.reduce((sum, { count: rooms }) => sum + rooms, 0);
}

function problemsOfRooms(page: RoomPage | undefined): Problem[] {
  if (page === undefined) return [];
  const heldBack = page.rooms.filter((room) => room.heldBack > 0).length;
  return [
    ...(page.servers < page.serversKnown
      ? [
          {
            tone: "trouble" as const,
            text: `${count(page.serversKnown - page.servers)} of ${counted(page.serversKnown, "room server")} did not answer: their rooms are missing below.`,
          },
        ]
      : []),
    ...(heldBack > 0
      ? [{ tone: "warning" as const, text: `${counted(heldBack, "room")} of those below held back: more than their share of a server.` }]
      : []),
  ];
}
