import { expect, test } from "vitest";

import type { ListedEvent } from "./answers.ts";
import { addEvents, EVENT_FILTERS, isFound, marksOf, NO_EVENTS, timesOf } from "./event-rows.ts";

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
const rowsOf = (...events: ListedEvent[]) => addEvents(NO_EVENTS, { events, last: seq }).rows;
const shown = (...events: ListedEvent[]) =>
  rowsOf(...events).map((row) => `${timesOf(row, new Date(MIDNIGHT + 1))} | ${row.what} | ${row.why}`);

const budget = (clock: string, from: number, to: number, delayMs: number, room = "trial1"): ListedEvent =>
  event(clock, "room_budget", "rs-1", { tenant: "default", room, from, to, cost: 5, delayMs });

test("[EPI1] the levels of a room are one episode with its end, its worst level, and the delay that caused it", () => {
  const rise = [budget("16:37:09", 0, 1, 120), budget("16:37:12", 1, 2, 412), budget("16:37:15", 2, 3, 240)];
  expect(shown(...rise)).toEqual([
    "since 16:37:09 | trial1 is under pressure: rose to level 3 | the event loop of rs-1 was up to 412 ms late, and this room was among those that used most of its time",
  ]);
  expect(shown(...rise, budget("16:37:30", 3, 2, 1))[0]).toContain(
    "since 16:37:09 | trial1 is under pressure: eased to level 2, worst level 3",
  );
  const whole = [...rise, budget("16:37:30", 3, 2, 1), budget("16:37:35", 2, 1, 1), budget("16:37:40", 1, 0, 1)];
  expect(shown(...whole)[0]).toMatch(/^16:37:09 to 16:37:40 \| trial1 was under pressure, worst level 3 \| .*412 ms late/);
  expect(shown(...whole, budget("16:40:00", 0, 1, 150))).toHaveLength(2);
  expect(shown(...rise, budget("16:37:10", 0, 1, 130, "other"))).toHaveLength(2);
});

test("[EPI2] a gateway under pressure names the measurement that its cause was about", () => {
  const shed = (clock: string, from: number, to: number, cause: string): ListedEvent =>
    event(clock, "shed_level", "gw-1", { from, to, cause, delayMs: 1, outboundBytes: 12_000_000, natsLagMs: 412 });
  expect(shown(shed("09:00:00", 0, 1, "outbound"), shed("09:00:05", 1, 2, "nats-lag"), shed("09:00:20", 2, 1, "calm"))).toEqual([
    "since 09:00:00 | Gateway gw-1 is under pressure: eased to level 1, worst level 2 | NATS answered after 412 ms; dropped spectators' presence except joins and leaves",
  ]);
  expect(shown(shed("09:00:00", 2, 0, "calm"))[0]).toContain("Gateway gw-1 was under pressure, worst level 2");
});

test("[EPI3] a nats-server that died explains the outage that gateways saw, and the slow log; a later outage is its own", () => {
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
    "14:03:01 to 14:03:04 | nats-server stopped, and was restarted after 2.5 s | it was killed, or the machine had no memory left; 2 gateways did not reach NATS for up to 4.1 s, and edits waited",
    "14:03:01 to 14:03:06 | The log was slow: edits waited up to 4.9 s | NATS was unreachable at that time; reported by 1 room server",
  ]);
});

test("[EPI4] a full disk that several room servers report is one episode until the last of them stores again", () => {
  const storage = (clock: string, by: string, state: string) => event(clock, "log_storage", by, { state });
  const full = [storage("10:00:00", "rs-1", "full"), storage("10:00:01", "rs-2", "full"), storage("10:05:00", "rs-1", "stores")];
  expect(shown(...full)).toEqual([
    "since 10:00:00 | The log stores no edits | JetStream refused records: its storage or disk was full; reported by 2 room servers",
  ]);
  expect(shown(...full, storage("10:05:02", "rs-2", "stores"))[0]).toMatch(/^10:00:00 to 10:05:02 \| The log stored no edits/);
  expect(rowsOf(...full)[0]).toMatchObject({ tone: "error", topic: "problem" });
});

test("[EPI8] a log that is slow while it stores nothing names that, also when somebody restarted the nats-server meanwhile", () => {
  const rows = shown(
    event("10:00:01", "log_storage", "rs-1", { state: "broken" }),
    event("10:00:30", "nats_lost", "gw-1", { downMs: 200 }),
    event("10:00:30", "log_storage", "rs-1", { state: "stores" }),
    event("10:00:30", "log_slow", "rs-1", { state: "slow", forMs: 29_000, worstMs: 29_000 }),
  );
  expect(rows.find((row) => row.includes("The log is slow"))).toContain("the log stored no edits at that time");
});

test("[EPI5] a log that is slow without an outage points to the disks, and redis-server is named when it died", () => {
  expect(shown(event("10:00:02", "log_slow", "rs-1", { state: "slow", forMs: 1_500, worstMs: 1_500 }))).toEqual([
    "since 10:00:00 | The log is slow: an edit waited 1.5 s | check the disks of the nats-servers and their network; reported by 1 room server",
  ]);
  expect(
    shown(event("10:00:02", "engine_restarted", "engines", { engine: "redis-server", exit: "exit code 1", downMs: 800 }))[0],
  ).toContain("redis-server stopped, and was restarted after 800 ms | it ended with exit code 1");
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
  expect(marksOf(rows)).toEqual([{ at: Date.parse(date("16:37:09")) / 1_000, text: "trial1 was under pressure, worst level 1" }]);
});

test("[EPI9] an episode that ended on another day shows both days", () => {
  const [begin, end] = [MIDNIGHT + 3_600_000, MIDNIGHT + 3_600_000 + 2 * 86_400_000].map((at) => new Date(at).toISOString());
  const times = (at: string, until: string, now: number): string => timesOf({ at, until }, new Date(now));
  expect(times(begin!, end!, MIDNIGHT + 5 * 86_400_000)).toBe("Nov 23 01:00:00 to Nov 25 01:00:00");
  expect(times(begin!, end!, Date.parse(begin!) + 1)).toBe("01:00:00 to Nov 25 01:00:00");
});
