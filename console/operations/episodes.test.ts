import { expect, test } from "vitest";

import type { FleetAnswer, ListedEvent } from "./answers.ts";
import { addEvents, EVENT_FILTERS, isFound, marksOf, NO_EVENTS, timesOf, withEndedReporters } from "./event-rows.ts";

const MIDNIGHT = new Date(2026, 10, 23).getTime();
/** `clock`: local time of day. */
const date = (clock: string): string => new Date(MIDNIGHT + Date.parse(`1970-01-01T${clock}Z`)).toISOString();
let seq = 0;
const event = (clock: string, kind: string, by: string, facts: Partial<ListedEvent> = {}): ListedEvent => ({
  seq: ++seq,
  at: date(clock),
  kind,
  by,
  ...facts,
});
const known = (...events: ListedEvent[]) => addEvents(NO_EVENTS, { events, last: seq });
const rowsOf = (...events: ListedEvent[]) => known(...events).rows;
const shown = (...events: ListedEvent[]) =>
  rowsOf(...events).map((row) => `${timesOf(row, new Date(MIDNIGHT + 1))} | ${row.what} | ${row.why}`);

const budget = (clock: string, from: number, to: number, delayMs: number, room = "trial1"): ListedEvent =>
  event(clock, "room_budget", "rs-1", { tenant: "default", room, from, to, cost: 5, delayMs });

test("[EPI1] the levels of a room are one episode with its end, its worst restriction, and the delay that caused it", () => {
  const rise = [budget("16:37:09", 0, 1, 120), budget("16:37:12", 1, 2, 412), budget("16:37:15", 2, 3, 240)];
  expect(shown(...rise)).toEqual([
    "since 16:37:09 | trial1 of default is throttled: presence every two seconds | the event loop of rs-1 was up to 412 ms late, and this room was among those that used most of its time",
  ]);
  expect(shown(...rise, budget("16:37:30", 3, 2, 1))[0]).toContain(
    "since 16:37:09 | trial1 of default is throttled: presence 5 times per second, at worst: presence every two seconds",
  );
  const whole = [...rise, budget("16:37:30", 3, 2, 1), budget("16:37:35", 2, 1, 1), budget("16:37:40", 1, 0, 1)];
  expect(shown(...whole)[0]).toMatch(
    /^16:37:09 to 16:37:40 \| trial1 of default was throttled, at worst: presence every two seconds \| .*412 ms late/,
  );
  expect(shown(...whole, budget("16:40:00", 0, 1, 150))).toHaveLength(2);
});

test("[EPI10] rooms of one tenant that are throttled at the same time are one episode, which names the tenant", () => {
  const busy = ["a", "b", "c", "d"].map((room, index) => budget(`16:37:1${index}`, 0, 1, 300 + index, room));
  const other = { ...budget("16:37:12", 0, 1, 90, "else"), tenant: "acme" };
  expect(shown(...busy, other)).toEqual([
    "since 16:37:12 | else of acme is throttled: presence 10 times per second | the event loop of rs-1 was up to 90 ms late, and this room was among those that used most of its time",
    "since 16:37:10 | 4 rooms of default are throttled: presence 10 times per second | a, b, c and 1 more; the event loop of rs-1 was up to 303 ms late, and these rooms used most of its time",
  ]);
  const released = ["a", "b", "c", "d"].map((room, index) => budget(`16:38:0${index}`, 1, 0, 1, room));
  expect(shown(...busy, ...released)[0]).toMatch(/^16:37:10 to 16:38:03 \| 4 rooms of default were throttled, at worst: presence 10 times/);
  expect(shown(...busy, ...released, budget("16:50:00", 0, 1, 120, "a")), "a later time is its own").toHaveLength(2);
});

test("[EPI19] processes of a role that die together are one episode until others take their place, with the effect if no other ran", () => {
  const loss = (clock: string, state: string, instance: string, running: number, forMs: number, role = "document-service") =>
    event(clock, "process_lost", "gw-1", { state, role, instance, running, forMs });
  const both = [loss("10:00:20", "lost", "ds-1", 0, 20_000), loss("10:00:21", "lost", "ds-2", 0, 20_000)];
  const why = "killed, crashed or cut off from NATS; no other ran: clients that opened a document waited";
  const what = "2 document services stopped without notice";
  expect(shown(...both)).toEqual([`since 10:00:00 | ${what} | ds-1, ds-2; ${why}; not replaced; check the log and the machine`]);
  const backs = [loss("10:01:00", "back", "ds-1", 0, 60_000), loss("10:01:01", "back", "ds-2", 0, 60_000)];
  expect(shown(...both, ...backs)).toEqual([`10:00:00 to 10:01:01 | ${what} | ds-1, ds-2; ${why}; check the log and the machine`]);
  expect(rowsOf(...both)[0]).toMatchObject({ topic: "problem", tone: "error" });
  const one = loss("10:00:20", "lost", "gw-2", 3, 20_000, "gateway");
  expect(shown(one)).toEqual([
    "10:00:00 | Gateway gw-2 stopped without notice | killed, crashed or cut off from NATS; 3 others ran on; not replaced; check the log and the machine",
  ]);
});

test("[EPI18] a JWKS that gives no keys is one episode of all gateways, with its reason", () => {
  const reason = "connect ECONNREFUSED 127.0.0.1:9";
  const lost = ["gw-1", "gw-2"].map((by, index) => event(`10:00:0${index}`, "jwks_lost", by, { state: "lost", forMs: 0, reason }));
  const why = `COROOM_JWKS_URL gives no keys: ${reason}`;
  expect(shown(...lost)).toEqual([`since 10:00:00 | 2 gateways cannot check new tokens | ${why}`]);
  expect(rowsOf(...lost)[0]).toMatchObject({ topic: "problem", tone: "error", isForVerdict: true });
  const found = ["gw-1", "gw-2"].map((by, index) => event(`10:03:0${index}`, "jwks_lost", by, { state: "found", forMs: 180_000, reason }));
  expect(shown(...lost, ...found)).toEqual([`10:00:00 to 10:03:01 | 2 gateways could not check new tokens | ${why}`]);
});

const refused = (clock: string, state: string, facts: Partial<ListedEvent> = {}): ListedEvent =>
  event(clock, "connections_refused", "gw-1", { state, close: "tokenExpired", count: 60, forMs: 3_000, ...facts });

test("[EPI11] refused connections are one episode with their number, their cause and whose they are", () => {
  const begun = refused("10:00:03", "refused", { ofTenant: "acme" });
  expect(shown(begun)).toEqual([
    "since 10:00:00 | Gateway gw-1 refuses many connections | their tokens have expired: check how long the application's tokens live, and its clock; most are of the tenant acme",
  ]);
  expect(shown(begun, refused("10:01:20", "normal", { count: 1_512, forMs: 60_000, address: "203.0.113.9" }))[0]).toMatch(
    /^10:00:00 to 10:01:00 \| Gateway gw-1 refused 1,512 connections \| their tokens have expired.*; most come from 203\.0\.113\.9$/,
  );
  expect(shown(refused("10:01:10", "normal", { count: 99, forMs: 60_000 })), "the beginning is older than the known events").toHaveLength(
    1,
  );
});

test("[EPI12] a room that cannot be merged is an episode that names its writers, until any document service has merged it", () => {
  const unmerged = (clock: string, by: string, state: string, users: readonly string[] = []) =>
    event(clock, "room_unmerged", by, { tenant: "acme", room: "plan", state, users });
  const stalled = [unmerged("10:00:00", "ds-1", "stalled", ["mallory"]), unmerged("10:05:00", "ds-2", "stalled", ["mallory"])];
  expect(shown(...stalled)).toEqual([
    "since 10:00:00 | plan of acme cannot be merged into its document | its new edits take too much time or memory; the edits are of mallory; check what they send. Other rooms are not affected",
  ]);
  expect(shown(...stalled, unmerged("10:06:00", "ds-2", "merged"))[0]).toMatch(/^10:00:00 to 10:06:00 \| plan of acme could not be merged/);
});

const fleetOf = (...instances: string[]): FleetAnswer => ({
  environment: "test",
  at: date("10:10:00"),
  reachesNats: true,
  servers: [],
  gateways: [],
  placement: {},
  services: { documents: 1, leaderboards: 0, leaderboardsWithoutRedis: 0 },
  processes: instances.map((instance) => ({ instance, role: "document-service" })),
});

test("[EPI14] an episode of a process that was killed does not go on, and the list says that its end is not known", () => {
  const unmerged = event("10:00:00", "room_unmerged", "ds-1", { tenant: "acme", room: "plan", state: "stalled", users: [] });
  const fleet = fleetOf("ds-1");
  const times = (given: FleetAnswer | undefined) =>
    withEndedReporters(known(unmerged), given).map((row) => `${timesOf(row, new Date(MIDNIGHT + 1))} ${row.why}`);
  const [goesOn] = times(undefined);
  expect(goesOn).toMatch(/^since 10:00:00 /);
  expect(times(fleet)).toEqual([goesOn]);
  const killed = { ...fleet, processes: [{ instance: "ds-2", role: "document-service" }] };
  expect(times({ ...killed, reachesNats: false }), "a gateway without NATS knows nothing about others").toEqual([goesOn]);
  expect(times(killed)[0]).toMatch(/^10:00:00 .*; ds-1 reported it and has ended, so its end is not known$/);
});

test("[EPI15] a room server that ended while the log was slow makes no episode go on, and hides no later one", () => {
  const slow = (clock: string, by: string, state: string) => event(clock, "log_slow", by, { state, forMs: 2_000, worstMs: 2_000 });
  const events = known(
    slow("10:00:02", "rs-1", "slow"),
    slow("10:00:03", "rs-2", "slow"),
    slow("10:00:10", "rs-2", "normal"),
    slow("15:00:02", "rs-2", "slow"),
    slow("15:00:10", "rs-2", "normal"),
  );
  const shownNow = (...alive: string[]) =>
    withEndedReporters(events, fleetOf(...alive)).map((row) => `${timesOf(row, new Date(MIDNIGHT + 1))} ${row.why}`);
  expect(shownNow("rs-2")).toEqual([
    "15:00:00 to 15:00:02 check the disks of the nats-servers and their network; reported by 1 room server",
    "10:00:00 to 10:00:03 check the disks of the nats-servers and their network; reported by 2 room servers",
  ]);
  expect(marksOf(withEndedReporters(events, fleetOf("rs-2"))).map(({ at }) => at * 1_000)).toEqual(
    ["10:00:00", "15:00:00"].map((clock) => Date.parse(date(clock))),
  );
  expect(shownNow("rs-1", "rs-2")).toEqual([expect.stringMatching(/^since 10:00:00 /)]);
  const alone = known(slow("10:00:02", "rs-1", "slow"), slow("15:00:02", "rs-2", "slow"));
  expect(withEndedReporters(alone, fleetOf("rs-2")).map((row) => [timesOf(row, new Date(MIDNIGHT + 1)), row.why])).toEqual([
    ["since 15:00:00", expect.stringMatching(/reported by 1 room server$/)],
    ["10:00:00", expect.stringMatching(/rs-1 reported it and has ended, so its end is not known$/)],
  ]);
});

test("[EPI2] a gateway under pressure names the measurement that its cause was about", () => {
  const shed = (clock: string, from: number, to: number, cause: string): ListedEvent =>
    event(clock, "shed_level", "gw-1", { from, to, cause, delayMs: 1, outboundBytes: 12_000_000, natsLagMs: 412 });
  expect(shown(shed("09:00:00", 0, 1, "outbound"), shed("09:00:05", 1, 2, "nats-lag"), shed("09:00:20", 2, 1, "calm"))).toEqual([
    "since 09:00:00 | Gateway gw-1 is under pressure: eased to level 1, worst level 2 | NATS took 412 ms or more to answer; dropped spectators' presence above one update per two seconds",
  ]);
  expect(shown(shed("09:00:00", 2, 0, "calm"))[0]).toContain("Gateway gw-1 was under pressure, worst level 2");
  const silent = [shed("09:00:03", 0, 6, "nats-lag"), shed("09:00:30", 6, 0, "calm")];
  const lost = (by: string): ListedEvent => event("09:00:15", "nats_lost", by, { downMs: 13_000 });
  expect(shown(...silent, lost("gw-1")), "a gateway under pressure because NATS was lost").toEqual([
    "09:00:02 to 09:00:15 | 1 gateway did not reach NATS for up to 13 s | edits waited; check the NATS servers and the network",
  ]);
  expect(shown(...silent, lost("gw-2")), "another gateway lost NATS").toHaveLength(2);
  expect(shown(shed("09:00:03", 0, 6, "delay"), lost("gw-1")), "its own event loop was late").toHaveLength(2);
});

test("[EPI3] a nats-server that died is one row with the outage that gateways saw and the wait of edits; a later outage is its own", () => {
  const rows = shown(
    event("14:03:05", "nats_lost", "gw-1", { downMs: 3_900 }),
    event("14:03:05", "nats_lost", "gw-2", { downMs: 4_100 }),
    event("14:03:04", "engine_restarted", "engines", { engine: "nats-server", exit: "SIGKILL", downMs: 2_500 }),
    event("14:03:06", "log_slow", "rs-1", { state: "slow", forMs: 4_800, worstMs: 4_800 }),
    event("14:03:11", "log_slow", "rs-1", { state: "normal", forMs: 5_000, worstMs: 4_900 }),
    event("15:00:01", "nats_lost", "gw-1", { downMs: 1_000 }),
  );
  expect(rows).toEqual([
    "15:00:00 to 15:00:01 | 1 gateway did not reach NATS for up to 1 s | edits waited; check the NATS servers and the network",
    "14:03:01 to 14:03:04 | nats-server stopped, and was restarted after 2.5 s | it was killed, or the machine had no memory left; 2 gateways did not reach NATS for up to 4.1 s; edits waited up to 4.9 s",
  ]);
});

test("[EPI16] an outage of Redis is one row for all gateways, and that of a local redis-server that died is in its row", () => {
  const lost = (clock: string, by: string) => event(clock, "redis_lost", by, { downMs: 20_000 });
  const died = event("11:00:01", "engine_restarted", "engines", { engine: "redis-server", exit: "SIGKILL", downMs: 2_000 });
  expect(shown(lost("10:00:30", "gw-1"), lost("10:00:31", "gw-2"))).toEqual([
    "10:00:10 to 10:00:31 | 2 gateways got no answers from Redis for up to 20 s | leaderboards and new bans waited for it, edits did not; check Redis and its disk, and the network",
  ]);
  const row = "10:59:59 to 11:00:01 | redis-server stopped, and was restarted after 2 s | it was killed, or the machine had no memory left";
  const effect = "leaderboards and new bans waited for it, edits did not";
  expect(shown(died)).toEqual([`${row}; ${effect}`]);
  expect(shown(died, lost("11:00:19", "gw-1"))).toEqual([`${row}; 1 gateway got no answers from Redis for up to 20 s; ${effect}`]);
});

test("[EPI4] a full disk that several room servers report is one episode until the last of them stores again", () => {
  const storage = (clock: string, by: string, state: string) => event(clock, "log_storage", by, { state });
  const full = [storage("10:00:00", "rs-1", "full"), storage("10:00:01", "rs-2", "full"), storage("10:05:00", "rs-1", "stores")];
  expect(shown(...full)).toEqual([
    "since 10:00:00 | The log stores no edits | JetStream refused records: its storage or disk was full; reported by 2 room servers. Free space on the disk, or raise max_file_store",
  ]);
  expect(shown(...full, storage("10:05:02", "rs-2", "stores"))[0]).toMatch(/^10:00:00 to 10:05:02 \| The log stored no edits/);
  expect(rowsOf(...full)[0]).toMatchObject({ tone: "error", topic: "problem" });
});

test("[EPI8] a log that stores nothing is one row with the wait of edits, also when somebody restarted the nats-server meanwhile", () => {
  const rows = shown(
    event("10:00:01", "log_storage", "rs-1", { state: "broken" }),
    event("10:00:30", "nats_lost", "gw-1", { downMs: 200 }),
    event("10:00:30", "log_storage", "rs-1", { state: "stores" }),
    event("10:00:30", "log_slow", "rs-1", { state: "slow", forMs: 29_000, worstMs: 29_000 }),
    event("10:00:35", "log_slow", "rs-1", { state: "normal", forMs: 29_000, worstMs: 29_000 }),
  );
  expect(rows.filter((row) => row.includes("slow"))).toEqual([]);
  expect(rows.find((row) => row.includes("did not reach NATS"))).toContain("| edits waited; check");
  expect(rows.find((row) => row.includes("stored no edits"))).toMatch(/reported by 1 room server; edits waited up to 29 s$/);
  expect(shown(event("11:00:01", "log_storage", "rs-1", { state: "broken" }))[0]).toContain(
    "Free space on the disk, then restart that nats-server: it stores nothing before",
  );
});

test("[EPI13] a log that stays slow after an outage is a row, and one of a room server that was late itself names that", () => {
  const slow = (clock: string, state: string, forMs: number) => event(clock, "log_slow", "rs-1", { state, forMs, worstMs: 1_500 });
  const outage = event("10:00:10", "nats_lost", "gw-1", { downMs: 2_000 });
  expect(shown(outage, slow("10:00:10", "slow", 1_500), slow("10:02:05", "normal", 112_000))).toContainEqual(
    expect.stringContaining("The log was slow: edits waited up to 1.5 s | NATS was unreachable at the beginning"),
  );
  expect(shown(budget("10:00:02", 0, 1, 1_400), slow("10:00:02", "slow", 1_500))).toContainEqual(
    expect.stringContaining(
      "The log is slow: an edit waited 1.5 s | the event loop of rs-1 was up to 1.4 s late at that time; check its CPU load",
    ),
  );
});

test("[EPI5] a log that is slow without an outage points to the disks, and redis-server is named when it died", () => {
  expect(shown(event("10:00:02", "log_slow", "rs-1", { state: "slow", forMs: 1_500, worstMs: 1_500 }))).toEqual([
    "since 10:00:00 | The log is slow: an edit waited 1.5 s | check the disks of the nats-servers and their network; reported by 1 room server",
  ]);
  expect(
    shown(event("10:00:02", "engine_restarted", "engines", { engine: "redis-server", exit: "exit code 1", downMs: 800 }))[0],
  ).toContain(
    "redis-server stopped, and was restarted after 800 ms | it ended with exit code 1; leaderboards and new bans waited for it, edits did not",
  );
});

test("[EPI7] a log that is slow while gateways measure a slow NATS names that as its cause", () => {
  const rows = shown(
    event("10:00:02", "shed_level", "gw-1", { from: 0, to: 1, cause: "nats-lag", delayMs: 1, outboundBytes: 0, natsLagMs: 1_200 }),
    event("10:00:03", "log_slow", "rs-1", { state: "slow", forMs: 2_000, worstMs: 2_000 }),
  );
  expect(rows.find((row) => row.includes("The log is slow"))).toContain("NATS answered gateways after up to 1.2 s at that time");
});

test("[EPI6] an episode of an earlier day shows its day, is found by its room, and is marked in charts where it began", () => {
  const rows = rowsOf(
    budget("16:37:09", 0, 1, 120),
    budget("16:37:20", 1, 0, 1),
    event("16:40:00", "mode_transition", "rs-1", { room: "trial1", from: "flat", to: "hierarchical", participants: 51, cause: "grew" }),
  );
  expect(timesOf(rows[1]!, new Date(MIDNIGHT + 86_400_000 + 1))).toBe("Nov 23 16:37:09 to 16:37:20");
  expect([rows.filter((row) => isFound(row, " TRIAL ")).length, rows.filter((row) => isFound(row, "trial2")).length]).toEqual([2, 0]);
  expect(rows.filter(EVENT_FILTERS.mode.shows)).toHaveLength(1);
  expect(rows.filter(EVENT_FILTERS.problem.shows)).toHaveLength(1);
  expect(marksOf(rows)).toEqual([
    { at: Date.parse(date("16:37:09")) / 1_000, text: "trial1 of default was throttled, at worst: presence 10 times per second" },
  ]);
});

test("[EPI9] an episode that ended on another day shows both days", () => {
  const [begin, end] = [MIDNIGHT + 3_600_000, MIDNIGHT + 3_600_000 + 2 * 86_400_000].map((at) => new Date(at).toISOString());
  const times = (at: string, until: string, now: number): string => timesOf({ at, until }, new Date(now));
  expect(times(begin!, end!, MIDNIGHT + 5 * 86_400_000)).toBe("Nov 23 01:00:00 to Nov 25 01:00:00");
  expect(times(begin!, end!, Date.parse(begin!) + 1)).toBe("01:00:00 to Nov 25 01:00:00");
});

test("[EPI17] the moves of a drained server displace no failure, and rooms that a server lost are listed as the takeover only", () => {
  const failure = event("10:00:02", "log_slow", "rs-1", { state: "slow", forMs: 1_500, worstMs: 1_500 });
  const ended = (why: string, room = "trial1"): ListedEvent => event("10:05:00", "room_ended", "rs-1", { room, why, reason: "" });
  const rows = rowsOf(failure, ...Array.from({ length: 600 }, (_, index) => ended("handed-over", `trial${index}`)));
  expect([rows.length, rows.filter(EVENT_FILTERS.problem.shows).length]).toEqual([2, 1]);
  expect(rows[0]).toMatchObject({
    what: "rs-1 handed over at least 300 rooms",
    why: "trial300, trial301, trial302 and 297 more",
    topic: "move",
  });
  const failed = rowsOf(ended("failed"), ...Array.from({ length: 600 }, () => ended("handed-over")));
  expect(failed.filter(({ tone }) => tone === "warning")).toMatchObject([{ what: "trial1 closed after a failure", topic: "move" }]);
  const promoted = event("10:05:00", "room_placed", "placement-1", { room: "trial1", action: "promote", server: "rs-2", reason: "gone" });
  const lost = rowsOf(ended("fenced"), promoted, ended("handed-over"));
  expect([lost.length, lost.filter(EVENT_FILTERS.notable.shows).length, marksOf(lost).length]).toEqual([3, 1, 0]);
});
