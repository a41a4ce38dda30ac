import { expect, test } from "vitest";

import type { FleetAnswer, ListedEvent, RoomPageAnswer, ListedTakeover } from "./answers.ts";
import { ago, clockTime, count, counted, percent, rate, shortName } from "./format.ts";
import { addEvents, type EventRow, type EventRows, NO_EVENTS, EVENT_FILTERS } from "./event-rows.ts";
import { verdictOf } from "./health.ts";
import { nextPollState, FIRST_POLL, nextPollMs, type PollState, pollRemark, mergeFleet } from "./polling.ts";

const server = { server: "rs-1", rooms: 3, draining: false, host: "", zone: "", pool: "", used: 0.1, hot: [] };
const gateway = { gateway: "gw-1", connections: 1, rooms: 3, shedLevel: 0, state: "ready" } as const;
const WELL: FleetAnswer = {
  environment: "production",
  at: "2026-11-23T14:10:00.000Z",
  reachesNats: true,
  servers: [server],
  gateways: [gateway],
  placement: { leader: "placement-1" },
  serversLost: [],
  services: { documents: 1, leaderboards: 1, leaderboardsWithoutRedis: 0 },
};
const LIVE: PollState = { state: "live" };
const page: RoomPageAnswer = { rooms: [], matching: 0, servers: 1, serversKnown: 1 };
const texts = (fleet: FleetAnswer, rooms = page) => verdictOf(fleet, rooms, LIVE, []).problems.map(({ text }) => text);

test("[OPC1] numbers and times are formatted for people", () => {
  expect([count(12_345), counted(1, "room"), counted(0, "room"), percent(0.426), rate(0), rate(0.31), rate(1_234.5)]).toEqual([
    "12,345",
    "1 room",
    "0 rooms",
    "43%",
    "–",
    "0.3",
    "1,235",
  ]);
  expect([ago(-5), ago(59_999), ago(60_000), ago(7_200_000), ago(200_000_000)]).toEqual([
    "0 s ago",
    "59 s ago",
    "1 min ago",
    "2 h ago",
    "2 d ago",
  ]);
  expect([shortName("rs-1"), shortName("rs-0123456789abcdef")]).toEqual(["rs-1", "rs-012345…cdef"]);
});

test("[OPC30] versions that run together are named with their processes", () => {
  const running = (...versions: readonly (string | undefined)[]): FleetAnswer => ({
    ...WELL,
    processes: versions.map((version, index) => ({
      instance: `p-${index}`,
      role: "gateway",
      ...(version === undefined ? {} : { version }),
    })),
  });
  expect(texts(running("0.3.0", "0.3.0"))).toEqual([]);
  expect(verdictOf(running("0.3.0", "0.3.0"), page, LIVE, []).facts).toContain("version 0.3.0");
  expect(texts(running("0.3.0", undefined, "0.3.0", "0.3.0", "0.3.0", "0.3.0"))).toEqual([
    "Several versions run together: 0.3.0 (p-0, p-2, p-3 and 2 others), 0.2.0 or earlier (p-1). Finish the upgrade.",
  ]);
  expect(texts(running(undefined))).toEqual([]);
});

test("[OPC31] processes that cannot work together are an error that names them", () => {
  const processes = [
    { instance: "rs-1", role: "room-server", version: "0.5.0", busVersion: 3, cannotWorkWith: [1] },
    { instance: "gw-1", role: "gateway", version: "0.5.0", busVersion: 1, cannotWorkWith: [3] },
    { instance: "gw-2", role: "gateway", version: "0.5.0", busVersion: 2 },
  ];
  expect(verdictOf({ ...WELL, processes }, page, LIVE, []).problems).toEqual([
    {
      tone: "error",
      text: "Processes run that cannot work together: bus version 1 (gw-1), bus version 3 (rs-1). Stop or replace the earlier ones now.",
    },
  ]);
});

test("[OPC2] the verdict is good only when every role is present, ready and drops nothing", () => {
  expect(verdictOf(WELL, page, LIVE, [])).toEqual({
    tone: "good",
    title: "All is well",
    problems: [],
    facts: [
      "1 of 1 gateway ready",
      "1 room server",
      "1 placement leader",
      "1 document service",
      "1 leaderboard",
      "1 connection",
      "3 open rooms",
    ],
  });
  const wrong: [Partial<FleetAnswer>, RegExp][] = [
    [{ servers: [] }, /No room server sends heartbeats/],
    [{ servers: [{ ...server, draining: true }] }, /Every room server is draining/],
    [{ servers: [server, { ...server, draining: true, rooms: 0 }] }, /is drained. You can stop it/],
    [{ servers: [{ ...server, used: 0.93 }] }, /uses 93% of its budget/],
    [{ gateways: [] }, /No gateway is ready/],
    [{ gateways: [gateway, { ...gateway, state: "degraded" }] }, /does not reach NATS/],
    [{ gateways: [{ ...gateway, shedLevel: 2 }] }, /drops spectators' presence/],
    [{ placement: {} }, /No placement leader/],
    [{ services: { documents: 0, leaderboards: 1, leaderboardsWithoutRedis: 0 } }, /No document service sends heartbeats/],
    [{ reachesNats: false }, /does not reach NATS/],
  ];
  for (const [more, text] of wrong) expect(texts({ ...WELL, ...more }).join()).toMatch(text);
});

test("[OPC13] a good verdict names the problems of the last hour, so that nobody takes it for a quiet hour", () => {
  const row = (at: string, topic: "problem" | "mode") => ({ key: at, at, topic, tone: "error" as const, what: "", why: "", by: "" });
  const rows = [
    row("2026-11-23T14:09:00.000Z", "mode"),
    row("2026-11-23T14:05:00.000Z", "problem"),
    row("2026-11-23T13:00:00.000Z", "problem"),
  ];
  const at = clockTime(new Date("2026-11-23T14:05:00.000Z"));
  expect(verdictOf(WELL, page, LIVE, [], rows).facts.at(-1)).toBe(`1 problem in the last hour, the last at ${at}`);
});

test("[OPC3] the worst problem comes first, and the verdict reports rooms missing from the list", () => {
  const verdict = verdictOf({ ...WELL, placement: {} }, { ...page, servers: 1, serversKnown: 2 }, LIVE, []);
  expect([verdict.tone, verdict.title, verdict.problems.map(({ tone }) => tone)]).toEqual([
    "error",
    "Something is wrong",
    ["error", "warning"],
  ]);
  expect(verdict.problems[0]?.text).toBe("1 of 2 room servers did not answer, so their rooms are missing below.");
});

test("[OPC7] the verdict is never good for old data, without NATS or without an answer", () => {
  const lost: PollState = { state: "lost", since: new Date(2026, 10, 23, 14, 3, 1), failures: 2 };
  const unreached = verdictOf(WELL, page, lost, []);
  expect([unreached.tone, unreached.title, unreached.problems.length]).toEqual(["error", "No answer from the gateway", 1]);
  expect(unreached.problems[0]!.text).toContain("14:03:01");
  const cutOff = verdictOf(
    { ...WELL, reachesNats: false, servers: [], services: { documents: 0, leaderboards: 0, leaderboardsWithoutRedis: 0 } },
    page,
    LIVE,
    [],
  );
  expect([cutOff.tone, cutOff.problems.map(({ text }) => text.slice(0, 34))]).toEqual(["error", ["This gateway does not reach NATS. "]]);
});

test("[OPC11] an answer from a gateway without NATS keeps the earlier data about other processes", () => {
  const before: FleetAnswer = { ...WELL, gateways: [gateway, { ...gateway, gateway: "gw-2" }] };
  const own = { ...gateway, state: "degraded" } as const;
  const answer: FleetAnswer = { ...WELL, at: "2026-11-23T14:10:02.000Z", reachesNats: false, servers: [], gateways: [own], placement: {} };
  expect(mergeFleet(before, answer)).toEqual({ ...before, at: answer.at, reachesNats: false, gateways: [own, before.gateways[1]] });
  expect([mergeFleet(undefined, answer), mergeFleet(answer, before)]).toEqual([answer, before]);
});

const event = (seq: number, facts: Partial<ListedEvent> = {}): ListedEvent => ({
  seq,
  at: new Date(Date.UTC(2026, 10, 23, 1) + seq).toISOString(),
  by: "rs-1",
  kind: "room_claimed",
  tenant: "default",
  room: "notes",
  epoch: 3,
  ...facts,
});
const what = ({ rows }: EventRows) => rows.map((row) => row.what);

test("[OPC4] each event row states what happened and why", () => {
  const rowOf = (facts: Partial<ListedEvent>) => addEvents(NO_EVENTS, { events: [event(1, facts)], last: 1 }).rows[0]!;
  expect(rowOf({ kind: "mode_transition", from: "flat", to: "hierarchical", participants: 51, cause: "grew" })).toMatchObject({
    topic: "mode",
    what: "notes: flat → hierarchical",
    why: "51 participants; the room grew",
  });
  const shrank = { kind: "mode_transition", from: "hierarchical", to: "flat", participants: 5, peak: 400, cause: "shrank" };
  expect(rowOf(shrank).why).toBe("5 participants, at most 400 before; the room shrank");
  expect(rowOf({ kind: "room_ended", why: "handed-over", reason: "" })).toMatchObject({
    topic: "move",
    what: "notes handed over",
    why: "by rs-1",
  });
  expect(rowOf({ kind: "room_placed", action: "promote", server: "rs-2", reason: "rs-1 was gone" })).toMatchObject({
    topic: "routine",
    what: "notes taken over by rs-2",
    why: "rs-1 was gone",
  });
  expect(rowOf({ kind: "placement_leads", by: "placement-1", generation: 0 })).toMatchObject({
    what: "placement-1 became placement leader",
    why: "no placement plan yet",
  });
  expect(rowOf({ kind: "of_next_year" })).toMatchObject({ what: "of_next_year notes" });
  expect(EVENT_FILTERS.notable.shows(rowOf({}))).toBe(false);
});

test("[OPC5] new events come first, each event appears once, and the number of rows is bounded", () => {
  const first = addEvents(NO_EVENTS, { events: [event(1, { room: "a" }), event(2, { room: "b" })], last: 2 });
  const second = addEvents(first, { events: [event(2, { room: "b" }), event(3, { room: "c" })], last: 4 });
  expect([what(second).map((text) => text[0]), second.last]).toEqual([["c", "b", "a"], 4]);
  const many = addEvents(second, { events: Array.from({ length: 1_000 }, (_, index) => event(index + 5)), last: 1_004 });
  expect(many.rows.length).toBe(300);
  const changes = { events: [event(1_005, { kind: "mode_transition" })], last: 1_005 };
  const buried = addEvents(addEvents(many, changes), {
    events: Array.from({ length: 1_000 }, (_, index) => event(index + 1_006)),
    last: 2_005,
  });
  expect(buried.rows.filter(({ topic }) => topic === "mode").length, "routine events displace no change of a mode").toBe(1);
  expect(addEvents(many, { events: [event(1, { room: "anew" })], last: 1 }).rows.map(({ key }) => key)).toEqual(["event 1"]);
});

const taken = (seq: number, by: string, count: number, more: Partial<ListedTakeover> = {}): ListedTakeover => ({
  seq,
  at: "2026-11-23T14:03:01.000Z",
  by,
  from: "rs-1",
  tenant: "default",
  count,
  rooms: [`r${seq}`],
  ...more,
});

test("[OPC35] the rooms that a server hands over within a minute form one row", () => {
  const handover = (seq: number, clock: string, by: string, room = `r${seq}`): ListedEvent =>
    event(seq, { at: `2026-11-23T${clock}.000Z`, kind: "room_ended", by, room, why: "handed-over", reason: "" });
  const stopped = [handover(1, "10:00:00", "rs-1"), handover(2, "10:00:01", "rs-2"), handover(3, "10:00:01", "rs-1")];
  const rows = addEvents(NO_EVENTS, { events: stopped, last: 3 });
  expect(what(rows)).toEqual(["r2 handed over", "rs-1 handed over 2 rooms"]);
  expect(rows.rows[1]).toMatchObject({ topic: "move", tone: "calm", why: "r1, r3" });
  const later = [handover(4, "10:00:59", "rs-1", "r1"), handover(5, "10:01:01", "rs-1"), handover(6, "10:01:02", "rs-1")];
  expect(what(addEvents(rows, { events: later, last: 6 })), "each room counts once").toEqual([
    "rs-1 handed over 2 rooms",
    "r2 handed over",
    "rs-1 handed over 2 rooms",
  ]);
});

test("[OPC36] a move that placement made is one row, with its target and reason", () => {
  const handover = (seq: number, clock: string, room: string): ListedEvent =>
    event(seq, { at: `2026-11-23T${clock}.000Z`, kind: "room_ended", by: "rs-1", room, why: "handed-over", reason: "" });
  const move = { at: "2026-11-23T10:00:01.000Z", kind: "room_placed", by: "placement-1", room: "a", action: "move", server: "rs-2" };
  const placed = event(2, { ...move, reason: "rs-1 is busy" });
  const moved = addEvents(NO_EVENTS, { events: [handover(1, "10:00:00", "a"), placed], last: 2 });
  expect(moved.rows).toMatchObject([{ what: "a moved to rs-2", why: "rs-1 is busy" }]);
  const others = [handover(3, "10:00:02", "b"), handover(4, "11:00:00", "a")];
  expect(what(addEvents(moved, { events: others, last: 4 })), "of another room, and at another time").toEqual([
    "a handed over",
    "b handed over",
    "a moved to rs-2",
  ]);
});

test("[OPC8] the rooms of a lost server form one row per server that takes them, with a growing count", () => {
  const first = addEvents(NO_EVENTS, { events: [], takeovers: [taken(1, "rs-2", 2, { rooms: ["a", "b"] })], last: 2 });
  expect(what(first)).toEqual(["rs-2 took over 2 rooms from rs-1"]);
  const grown = [taken(1, "rs-2", 4_998, { rooms: ["a", "b", "c"] }), taken(7, "rs-2", 2, { tenant: "acme" }), taken(9, "rs-3", 2)];
  const all = addEvents(first, { events: [event(5_003, { at: "2026-11-23T14:04:00.000Z" })], takeovers: grown, last: 5_003 });
  expect(what(all)).toEqual(["notes owned by rs-1", "rs-3 took over 2 rooms from rs-1", "rs-2 took over 5,000 rooms from rs-1"]);
  expect(all.rows[2]).toMatchObject({ tone: "warning", why: "a, b, c and 4,997 more" });
  expect([EVENT_FILTERS.notable, EVENT_FILTERS.move].map(({ shows }) => shows(all.rows[2]!))).toEqual([true, true]);
  const later = addEvents(all, { events: [], takeovers: [taken(5_004, "rs-2", 1, { at: "2026-11-23T14:05:00.000Z" })], last: 5_004 });
  expect([what(later)[0], later.rows.length]).toEqual(["rs-2 took over 1 room from rs-1", 4]);
  expect(addEvents(later, { events: [], last: 5_004 }).rows).toEqual(later.rows); // An answer of an earlier version has no takeovers.
});

test("[OPC9] the verdict names a recently lost server and its rooms, but not a server lost long ago whose rooms reopened", () => {
  const others = { servers: [{ ...server, server: "rs-2" }] };
  const lost = (rooms: number) => ({ ...others, serversLost: [{ server: "rs-1", rooms, at: "2026-11-23T14:03:02.000Z" }] });
  const problems = (fleet: Partial<FleetAnswer>, takeovers: readonly ListedTakeover[]) =>
    verdictOf({ ...WELL, ...fleet }, page, LIVE, takeovers).problems.map(({ text }) => text);
  const [at, missed] = ["2026-11-23T14:03:01.000Z", "2026-11-23T14:03:02.000Z"].map((date) => clockTime(new Date(date)));
  const both = [taken(1, "rs-2", 498), taken(2, "rs-3", 2)];
  expect(problems(others, both)).toEqual([]);
  const found = `Room server rs-1 stopped sending heartbeats at ${missed}. `;
  const advice = "Check its machine and its log, and start another room server.";
  expect(problems(lost(500), both)).toEqual([`${found}Other servers have taken over 500 of its 500 rooms. ${advice}`]);
  const behind = both.map((takeover) => ({ ...takeover, at: "2026-11-23T13:03:01.000Z" }));
  expect(problems(lost(500), behind), "whose takers' clocks are an hour behind").toEqual(problems(lost(500), both));
  expect(problems(lost(501), both)).toEqual([
    `${found}Other servers have taken over 500 of its 501 rooms, and take over the rest when clients need them. ${advice}`,
  ]);
  expect(problems(lost(0), [])).toEqual([`${found}It had no rooms. ${advice}`]);
  expect(problems({}, both)).toEqual([
    `Room server rs-1 was unreachable and is back. Other servers took over 500 of its rooms at ${at}. Check its CPU load and its network connection to NATS.`,
  ]);
  const earlier = taken(0, "rs-2", 498, { at: "2026-11-23T14:00:00.000Z" }); // The same rooms, at a first failure.
  expect(problems({}, [earlier, ...both])).toEqual(problems({}, both));
  expect(problems({ at: "2026-11-23T14:13:02.000Z" }, both)).toEqual([]);
});

test("[OPC33] the verdict names no lost server whose place another one has taken", () => {
  const fleet = { ...WELL, serversLost: [{ server: "rs-1", rooms: 4, at: "2026-11-23T14:03:02.000Z" }] };
  const report = (seq: number, state: string, instance: string): ListedEvent => ({
    seq,
    at: "2026-11-23T14:03:22.000Z",
    kind: "process_lost",
    by: "gw-1",
    role: "room-server",
    state,
    instance,
    running: 1,
    forMs: 20_000,
  });
  const problems = (...events: readonly ListedEvent[]): number =>
    verdictOf(fleet, page, LIVE, [], addEvents(NO_EVENTS, { events, last: 9 }).rows).problems.length;
  const lost = report(1, "lost", "rs-1");
  expect([problems(lost), problems(lost, report(2, "lost", "rs-0"), report(3, "back", "rs-0"))]).toEqual([1, 1]);
  expect(problems(lost, report(2, "back", "rs-1"))).toBe(0);
});

test("[OPC34] the verdict names a lost process without replacement for ten minutes, unless its missing heartbeats are named", () => {
  const at = "2026-11-23T14:03:22.000Z";
  const problems = (role: string, running: number, now: string, state = "lost"): string[] => {
    const lost: ListedEvent = { seq: 1, at, kind: "process_lost", by: "gw-1", role, state: "lost", instance: "it", running, forMs: 20_000 };
    const { rows } = addEvents(NO_EVENTS, { events: [lost, { ...lost, seq: 2, state }], last: 9 });
    return verdictOf({ ...WELL, at: now }, page, LIVE, [], rows).problems.map(({ text }) => text);
  };
  const clock = clockTime(new Date("2026-11-23T14:03:02.000Z"));
  expect(problems("gateway", 1, "2026-11-23T14:13:02.000Z")).toEqual([
    `Gateway it stopped without notice at ${clock}: killed, crashed or cut off from NATS; 1 other ran on; not replaced; check the log and the machine.`,
  ]);
  expect(problems("gateway", 1, "2026-11-23T14:13:03.000Z")).toEqual([]);
  expect(problems("gateway", 1, at, "back")).toEqual([]);
  const shown = [
    ["document-service", 1],
    ["document-service", 0],
    ["leaderboard", 0],
    ["room-server", 1],
  ] as const;
  expect(shown.map(([role, running]) => problems(role, running, at).length)).toEqual([1, 0, 1, 0]);
});

test("[OPC32] an outage of NATS, and not a room server, is the cause of takeovers at its end", () => {
  const servers = [server, { ...server, server: "rs-2" }];
  const problems = (...events: readonly ListedEvent[]) =>
    verdictOf({ ...WELL, servers }, page, LIVE, [taken(9, "rs-2", 3)], addEvents(NO_EVENTS, { events, last: 9 }).rows).problems.length;
  const at = (clock: string): string => `2026-11-23T${clock}.000Z`;
  const outage = (clock: string): ListedEvent => ({ seq: 1, at: at(clock), kind: "nats_lost", by: "gw-1", downMs: 20_000 });
  const restart: ListedEvent = { ...outage("14:03:00"), kind: "engine_restarted", by: "engines", engine: "nats-server", exit: "SIGKILL" };
  const elsewhere = [[], [outage("14:02:50")], [outage("14:03:30")], [{ ...restart, engine: "redis-server" }]];
  expect(elsewhere.map((events) => problems(...events))).toEqual([1, 1, 1, 1]);
  expect([[outage("14:03:00")], [outage("14:03:10")], [restart]].map((events) => problems(...events))).toEqual([0, 0, 0]);
  const gateways = ["gw-1", "gw-2", "gw-3"].map((name) => ({ ...gateway, gateway: name }));
  const among = (events: readonly ListedEvent[]) =>
    verdictOf({ ...WELL, servers, gateways }, page, LIVE, [taken(9, "rs-2", 3)], addEvents(NO_EVENTS, { events, last: 9 }).rows).problems
      .length;
  const one = outage("14:03:00");
  expect(among([one]), "one gateway of three lost NATS alone").toBe(1);
  expect([among([one, { ...one, seq: 2, by: "gw-2" }]), among([restart])]).toEqual([0, 0]);
});

test("[OPC10] the verdict reports missing Redis connections and their effect: rooms and edits do not need Redis", () => {
  const without = { ...gateway, gateway: "gw-2", reachesRedis: false };
  const boards = (leaderboards: number, leaderboardsWithoutRedis: number) => ({ documents: 1, leaderboards, leaderboardsWithoutRedis });
  expect(texts({ ...WELL, gateways: [{ ...gateway, reachesRedis: true }, gateway] })).toEqual([]);
  const verdict = verdictOf({ ...WELL, gateways: [gateway, without], services: boards(1, 1) }, page, LIVE, []);
  expect(verdict.tone).toBe("warning");
  expect(verdict.problems.map(({ text }) => text)).toEqual([
    "The leaderboard does not get answers from Redis: boards are not updated. They catch up when Redis is back. Check Redis and its disk, the network and COROOM_REDIS_URL.",
    "1 of 2 gateways does not get answers from Redis: a new ban lasts only while a gateway that knows it runs. Bans are stored when Redis is back. Check Redis and its disk, the network and COROOM_REDIS_URL.",
  ]);
  expect(texts({ ...WELL, services: boards(2, 2) })[0]).toMatch(/^2 of 2 leaderboards do not get answers from Redis/);
});

test("[OPC12] the verdict names a room server that cannot store edits, and a gateway that reports it", () => {
  const [server] = WELL.servers;
  const full = { ...WELL, servers: [{ ...server!, logObstacle: "the storage of the log is full" }] };
  expect(texts(full)).toEqual(["rs-1 refuses edits: the storage of the log is full."]);
  const all = [...full.servers, { ...full.servers[0]!, server: "rs-2" }];
  expect(texts({ ...full, servers: all, placement: {} }), "placement cannot store its lease either").toEqual([
    "2 room servers refuse edits: the storage of the log is full.",
  ]);
  expect(texts({ ...WELL, gateways: [{ ...gateway, state: "log-full" }, gateway] })).toEqual([
    "Gateway gw-1 is not ready, because no room server can store edits.",
  ]);
});

test("[OPC14] causes come before their effects, and a full disk is named even while nothing else fails", () => {
  const [server] = WELL.servers;
  const full = {
    ...WELL,
    diskFreeBytes: 4_000_000,
    servers: [{ ...server!, logObstacle: "the log stores no records" }],
    gateways: [{ ...gateway, state: "log-full" as const }],
  };
  expect(texts(full)).toEqual([
    "The disk with the data folder has only 4 MB free. On a full disk nats-server and redis-server store nothing. Free space now.",
    "rs-1 refuses edits: the log stores no records.",
    "No gateway is ready, so no new client can connect. The reason of each is named here.",
    "Gateway gw-1 is not ready, because no room server can store edits.",
  ]);
  expect(texts({ ...WELL, diskFreeBytes: 1_000_000_000 })).toEqual([]);
  expect(texts({ ...WELL, diskFreeBytes: 0, reachesNats: false })).toHaveLength(2);
});

test("[OPC15] throttled rooms are named with their tenant, those of a busy tenant together", () => {
  const row = (tenant: string, room: string, heldBack: number) =>
    ({ tenant, room, server: "rs-1", mode: "flat", participants: 1, gateways: 1, editsPerSecond: 60, heldBack }) as const;
  const rooms = [...["a", "b", "c", "d"].map((room) => row("acme", room, 8)), row("default", "notes", 4), row("default", "wiki", 0)];
  expect(texts(WELL, { ...page, rooms: rooms.map((each) => ({ ...each, participants: 0 })) }), "nobody is affected").toEqual([]);
  expect(texts(WELL, { ...page, rooms })).toEqual([
    "rs-1 throttles 4 rooms of the tenant acme: a, b, c and 1 other. They used most of its time while it was late.",
    "rs-1 throttles 1 room of the tenant default: notes. It used most of its time while it was late.",
  ]);
});

test("[OPC16] an ongoing episode that only events show is part of the verdict while its process runs", () => {
  const row = {
    key: "1",
    at: "2026-11-23T14:09:00.000Z",
    until: "now",
    topic: "problem",
    tone: "warning",
    what: "Gateway gw-1 refuses many connections",
    why: "their tokens have expired",
    by: "gw-1",
    isForVerdict: true,
  } as const;
  const problems = (fleet: FleetAnswer, ...rows: EventRow[]) => verdictOf(fleet, page, LIVE, [], rows).problems;
  const since = clockTime(new Date(row.at));
  expect(problems(WELL, row)).toEqual([
    { tone: "warning", text: `Gateway gw-1 refuses many connections since ${since}: their tokens have expired.` },
  ]);
  expect(problems(WELL, { ...row, until: "2026-11-23T14:10:00.000Z" })).toEqual([]);
  expect(problems({ ...WELL, processes: [] }, { ...row, by: "gw-gone" })).toEqual([]);
});

test("[OPC6] the console shows since when a gateway has not answered, and polls it less often until it answers", () => {
  const at = (seconds: number) => new Date(2026, 10, 23, 14, 3, seconds);
  const lost = nextPollState(nextPollState({ state: "live" }, { kind: "unreachable" }, at(1)), { kind: "unreachable" }, at(5));
  expect([pollRemark(lost).text, nextPollMs(lost, { kind: "unreachable" })]).toEqual(["No answer since 14:03:01", 4_000]);
  expect(nextPollMs({ state: "lost", since: at(1), failures: 50 }, { kind: "unreachable" })).toBe(10_000);
  expect([
    nextPollState(lost, { kind: "answered" }, at(9)),
    nextPollState({ state: "live" }, { kind: "too-fast", waitMs: 5_000 }, at(9)),
  ]).toEqual([{ state: "live" }, { state: "live" }]);
  expect([
    nextPollMs({ state: "live" }, { kind: "too-fast", waitMs: 5_000 }),
    nextPollMs({ state: "live" }, { kind: "answered" }),
    pollRemark(FIRST_POLL).text,
  ]).toEqual([5_000, 2_000, "Connecting…"]);
});
