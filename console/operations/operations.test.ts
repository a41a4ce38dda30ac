import { expect, test } from "vitest";

import type { Fleet, OperationsEvent, RoomPage, Takeover } from "./answers.ts";
import { ago, clockTime, count, counted, percent, rate, shortName } from "./format.ts";
import { fold, type Happenings, NOTHING_YET, SHOWN } from "./happenings.ts";
import { verdictOf } from "./health.ts";
import { knownFleet } from "./known-fleet.ts";
import { after, ASKING, nextAskMs, type Reach, reachRemark } from "./reach.ts";

const server = { server: "rs-1", rooms: 3, draining: false, host: "", zone: "", pool: "", used: 0.1, hot: [] };
const gateway = { gateway: "gw-1", connections: 1, rooms: 3, shedLevel: 0, state: "ready" } as const;
const WELL: Fleet = {
  environment: "production",
  at: "2026-11-23T14:10:00.000Z",
  reachesNats: true,
  servers: [server],
  gateways: [gateway],
  placement: { leader: "placement-1" },
  serversLost: [],
  services: { documents: 1, leaderboards: 1, leaderboardsWithoutRedis: 0 },
};
const LIVE: Reach = { state: "live" };
const page: RoomPage = { rooms: [], matching: 0, servers: 1, serversKnown: 1 };
const texts = (fleet: Fleet, rooms = page) => verdictOf(fleet, rooms, LIVE, []).problems.map(({ text }) => text);

test("[OPC1] figures are written as people read them", () => {
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

test("[OPC2] all is well only where every role is there, ready, and leaves nothing out", () => {
  expect(verdictOf(WELL, page, LIVE, [])).toEqual({
    tone: "good",
    title: "All is well",
    problems: [],
    facts: [
      "1 of 1 gateway ready",
      "1 room server",
      "placement leads",
      "1 document service",
      "1 leaderboard",
      "1 connection",
      "3 open rooms",
    ],
  });
  const wrong: [Partial<Fleet>, RegExp][] = [
    [{ servers: [] }, /No room server is heard/],
    [{ servers: [{ ...server, draining: true }] }, /Every room server is draining/],
    [{ servers: [server, { ...server, draining: true, rooms: 0 }] }, /drained: it can be stopped/],
    [{ servers: [{ ...server, used: 0.93 }] }, /uses 93% of its budget/],
    [{ gateways: [] }, /No gateway is ready/],
    [{ gateways: [gateway, { ...gateway, state: "degraded" }] }, /does not reach NATS/],
    [{ gateways: [{ ...gateway, shedLevel: 2 }] }, /leaves out spectators' presence/],
    [{ placement: {} }, /No placement leads/],
    [{ services: { documents: 0, leaderboards: 1, leaderboardsWithoutRedis: 0 } }, /No document service is heard/],
    [{ reachesNats: false }, /does not reach NATS/],
  ];
  for (const [more, said] of wrong) expect(texts({ ...WELL, ...more }).join()).toMatch(said);
});

test("[OPC3] the worst comes first, and rooms that are missing from the list are said to be", () => {
  const verdict = verdictOf({ ...WELL, placement: {} }, { ...page, servers: 1, serversKnown: 2 }, LIVE, []);
  expect([verdict.tone, verdict.title, verdict.problems.map(({ tone }) => tone)]).toEqual([
    "trouble",
    "Something is wrong",
    ["trouble", "warning"],
  ]);
  expect(verdict.problems[0]?.text).toBe("1 of 2 room servers did not answer: their rooms are missing below.");
});

test("[OPC7] what is old is never called well: neither without NATS nor where nobody answers", () => {
  const lost: Reach = { state: "lost", since: new Date(2026, 10, 23, 14, 3, 1), failures: 2 };
  const unreached = verdictOf(WELL, page, lost, []);
  expect([unreached.tone, unreached.title, unreached.problems.length]).toEqual(["trouble", "Nobody answers", 1]);
  expect(unreached.problems[0]!.text).toContain("14:03:01");
  const cutOff = verdictOf(
    { ...WELL, reachesNats: false, servers: [], services: { documents: 0, leaderboards: 0, leaderboardsWithoutRedis: 0 } },
    page,
    LIVE,
    [],
  );
  expect([cutOff.tone, cutOff.problems.map(({ text }) => text.slice(0, 34))]).toEqual(["trouble", ["This gateway does not reach NATS: "]]);
});

test("[OPC11] of what a gateway without NATS does not hear, what was known before stays", () => {
  const before: Fleet = { ...WELL, gateways: [gateway, { ...gateway, gateway: "gw-2" }] };
  const own = { ...gateway, state: "degraded" } as const;
  const told: Fleet = { ...WELL, at: "2026-11-23T14:10:02.000Z", reachesNats: false, servers: [], gateways: [own], placement: {} };
  expect(knownFleet(before, told)).toEqual({ ...before, at: told.at, reachesNats: false, gateways: [own, before.gateways[1]] });
  expect([knownFleet(undefined, told), knownFleet(told, before)]).toEqual([told, before]);
});

const event = (seq: number, facts: Partial<OperationsEvent> = {}): OperationsEvent => ({
  seq,
  at: "2026-11-23T01:00:00.000Z",
  by: "rs-1",
  kind: "room_claimed",
  tenant: "default",
  room: "notes",
  epoch: 3,
  ...facts,
});
const what = ({ rows }: Happenings) => rows.map((row) => row.what);

test("[OPC4] each event is a sentence with its cause", () => {
  const said = (facts: Partial<OperationsEvent>) => fold(NOTHING_YET, { events: [event(1, facts)], last: 1 }).rows[0]!;
  expect(said({ kind: "mode_transition", from: "flat", to: "hierarchical", participants: 51, cause: "grew" })).toMatchObject({
    topic: "mode",
    what: "notes: flat → hierarchical",
    why: "51 participants; it grew",
  });
  expect(said({ kind: "room_ended", why: "handed-over", reason: "" })).toMatchObject({
    topic: "move",
    what: "notes handed over",
    why: "by rs-1",
  });
  expect(said({ kind: "room_placed", action: "promote", server: "rs-2", reason: "rs-1 was gone" })).toMatchObject({
    topic: "move",
    what: "notes taken over by rs-2",
    why: "rs-1 was gone",
  });
  expect(said({ kind: "shed_level", by: "gw-1", from: 0, to: 1, cause: "nats-lag" })).toMatchObject({
    topic: "load",
    tone: "warning",
    what: "Gateway gw-1 leaves out spectators' presence above 5 times a second",
    why: "NATS is slow",
  });
  expect(said({ kind: "room_budget", from: 2, to: 0, delayMs: 3.2 })).toMatchObject({ tone: "calm", what: "notes is held back no more" });
  expect(said({ kind: "of_next_year" })).toMatchObject({ what: "of_next_year notes" });
  expect(SHOWN.notable.shows(said({}))).toBe(false);
});

test("[OPC5] what each answer brings goes on top, once, and the rows are bounded", () => {
  const first = fold(NOTHING_YET, { events: [event(1, { room: "a" }), event(2, { room: "b" })], last: 2 });
  const second = fold(first, { events: [event(2, { room: "b" }), event(3, { room: "c" })], last: 4 });
  expect([what(second).map((text) => text[0]), second.last]).toEqual([["c", "b", "a"], 4]);
  const many = fold(second, { events: Array.from({ length: 1_000 }, (_, index) => event(index + 5)), last: 1_004 });
  expect(many.rows.length).toBe(300);
  expect(fold(many, { events: [event(1, { room: "anew" })], last: 1 }).rows.map(({ seq }) => seq)).toEqual([1]);
});

const taken = (seq: number, by: string, count: number, more: Partial<Takeover> = {}): Takeover => ({
  seq,
  at: "2026-11-23T14:03:01.000Z",
  by,
  from: "rs-1",
  tenant: "default",
  count,
  rooms: [`r${seq}`],
  ...more,
});

test("[OPC8] the rooms of a server that is lost are one row for each server that takes them, whose count grows", () => {
  const first = fold(NOTHING_YET, { events: [], takeovers: [taken(1, "rs-2", 2, { rooms: ["a", "b"] })], last: 2 });
  expect(what(first)).toEqual(["rs-2 took over 2 rooms from rs-1"]);
  const grown = [taken(1, "rs-2", 4_998, { rooms: ["a", "b", "c"] }), taken(7, "rs-2", 2, { tenant: "acme" }), taken(9, "rs-3", 2)];
  const all = fold(first, { events: [event(5_003)], takeovers: grown, last: 5_003 });
  expect(what(all)).toEqual(["notes owned by rs-1", "rs-3 took over 2 rooms from rs-1", "rs-2 took over 5,000 rooms from rs-1"]);
  expect(all.rows[2]).toMatchObject({ tone: "warning", why: "a, b, c and 4,997 more" });
  expect([SHOWN.notable, SHOWN.move].map(({ shows }) => shows(all.rows[2]!))).toEqual([true, true]);
  const later = fold(all, { events: [], takeovers: [taken(5_004, "rs-2", 1, { at: "2026-11-23T14:05:00.000Z" })], last: 5_004 });
  expect([what(later)[0], later.rows.length]).toEqual(["rs-2 took over 1 room from rs-1", 4]);
  expect(fold(later, { events: [], last: 5_004 }).rows).toEqual(later.rows); // Of a gateway of an earlier version.
});

test("[OPC9] a server that was lost lately is named with its rooms; one that was lost long ago is not, though its rooms are opened again", () => {
  const others = { servers: [{ ...server, server: "rs-2" }] };
  const lost = (rooms: number) => ({ ...others, serversLost: [{ server: "rs-1", rooms, at: "2026-11-23T14:03:02.000Z" }] });
  const said = (fleet: Partial<Fleet>, takeovers: readonly Takeover[]) =>
    verdictOf({ ...WELL, ...fleet }, page, LIVE, takeovers).problems.map(({ text }) => text);
  const [at, missed] = ["2026-11-23T14:03:01.000Z", "2026-11-23T14:03:02.000Z"].map((date) => clockTime(new Date(date)));
  const both = [taken(1, "rs-2", 498), taken(2, "rs-3", 2)];
  expect(said(others, both)).toEqual([]);
  const told = `Room server rs-1 fell silent at ${missed}. `;
  const deed = "Look at its machine and its log, and start another.";
  expect(said(lost(500), both)).toEqual([`${told}Others have taken over 500 of its 500 rooms. ${deed}`]);
  const behind = both.map((takeover) => ({ ...takeover, at: "2026-11-23T13:03:01.000Z" }));
  expect(said(lost(500), behind), "whose takers' clocks are an hour behind").toEqual(said(lost(500), both));
  expect(said(lost(501), both)).toEqual([
    `${told}Others have taken over 500 of its 501 rooms, and take the rest as people need them. ${deed}`,
  ]);
  expect(said(lost(0), [])).toEqual([`${told}It had no room. ${deed}`]);
  expect(said({}, both)).toEqual([
    `Room server rs-1 was not reached, and is heard: 500 rooms of it were taken over at ${at}. Look whether it is short of CPU, and at the way to NATS.`,
  ]);
  expect(said({ at: "2026-11-23T14:13:02.000Z" }, both)).toEqual([]);
});

test("[OPC10] who does not reach Redis is told, with what it means: rooms and edits do not need it", () => {
  const without = { ...gateway, gateway: "gw-2", reachesRedis: false };
  const boards = (leaderboards: number, leaderboardsWithoutRedis: number) => ({ documents: 1, leaderboards, leaderboardsWithoutRedis });
  expect(texts({ ...WELL, gateways: [{ ...gateway, reachesRedis: true }, gateway] })).toEqual([]);
  const verdict = verdictOf({ ...WELL, gateways: [gateway, without], services: boards(1, 1) }, page, LIVE, []);
  expect(verdict.tone).toBe("warning");
  expect(verdict.problems.map(({ text }) => text)).toEqual([
    "The leaderboard does not reach Redis: boards stand still, and are made up for once it is back. Look at Redis, at the way to it and at COROOM_REDIS_URL.",
    "1 of 2 gateways does not reach Redis: bans hold for as long as a gateway runs that knows them, and are kept once it is back. Look at Redis, at the way to it and at COROOM_REDIS_URL.",
  ]);
  expect(texts({ ...WELL, services: boards(2, 2) })[0]).toMatch(/^2 of 2 leaderboards do not reach Redis/);
});

test("[OPC6] a gateway that is not reached is said to be so since when, and is asked less often until it answers", () => {
  const at = (seconds: number) => new Date(2026, 10, 23, 14, 3, seconds);
  const lost = after(after({ state: "live" }, { kind: "unreachable" }, at(1)), { kind: "unreachable" }, at(5));
  expect([reachRemark(lost).text, nextAskMs(lost, { kind: "unreachable" })]).toEqual(["Not reached since 14:03:01", 4_000]);
  expect(nextAskMs({ state: "lost", since: at(1), failures: 50 }, { kind: "unreachable" })).toBe(10_000);
  expect([after(lost, { kind: "answered" }, at(9)), after({ state: "live" }, { kind: "too-fast", waitMs: 5_000 }, at(9))]).toEqual([
    { state: "live" },
    { state: "live" },
  ]);
  expect([
    nextAskMs({ state: "live" }, { kind: "too-fast", waitMs: 5_000 }),
    nextAskMs({ state: "live" }, { kind: "answered" }),
    reachRemark(ASKING).text,
  ]).toEqual([5_000, 2_000, "Asking…"]);
});
