import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { SanctionsBus, SanctionStore } from "../ports.ts";
import { keyOf, Sanctions } from "./sanctions.ts";
import { SanctionsHost } from "./sanctions-host.ts";

const acme = "acme" as TenantId;
const eve = "eve" as UserId;
const at = (ms: number): UnixMillis => ms as UnixMillis;
const ban = (given: Partial<Sanction> = {}): Sanction => ({
  target: { kind: "user", tenant: acme, user: eve },
  level: "banned",
  until: at(60_000),
  madeAt: at(0),
  lifted: false,
  reason: "",
  ...given,
});

let clock: FakeClock;
let kept: Map<string, Sanction>;
/** Delivers a sanction of another gateway. `published` holds what this gateway published. */
let deliver: (sanction: Sanction) => void;
let published: Sanction[];
/** The answers of other gateways. A test may replace it. */
let requestSanctions: SanctionsBus["requestSanctions"];
/** Writes to the store. A test may replace it. */
let save: SanctionStore["save"];
let breaks: number;

beforeEach(() => {
  clock = new FakeClock(1_000);
  kept = new Map();
  published = [];
  requestSanctions = async () => [];
  save = async (sanction) => void kept.set(keyOf(sanction), sanction);
  breaks = 0;
});

function start(known: readonly Sanction[] = []): SanctionsHost {
  const bus: SanctionsBus = {
    publishSanction: (sanction) => void published.push(sanction),
    onSanction: (receive) => void (deliver = receive),
    requestSanctions: () => requestSanctions(),
    onRequest: () => {},
  };
  const store: SanctionStore = { breaks: () => breaks, load: async () => [...kept.values()], save: (sanction) => save(sanction) };
  const sanctions = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of known) sanctions.receiveSanction(sanction, clock.wallNow());
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, fatal: () => {} };
  const host = new SanctionsHost(sanctions, bus, store, {
    clock,
    log,
    metrics: gatewayMetrics(new Registry()),
    backbone: { isUp: true, losses: 0 },
  });
  host.start(() => {});
  return host;
}

test("[SAN7] a lift holds on all gateways although the ban was made by a gateway whose clock is ahead", () => {
  const host = start();
  deliver(ban({ madeAt: at(9_000) }));
  host.impose(ban({ lifted: true, madeAt: at(1_000) }));
  expect(host.banOf(acme, eve)).toBeUndefined();
  const elsewhere = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of [...published, ban({ madeAt: at(9_000) })]) elsewhere.receiveSanction(sanction, at(1_000));
  expect(elsewhere.banOf(acme, eve)).toBeUndefined();
  host.impose(ban({ madeAt: at(1_000) }));
  expect(host.banOf(acme, eve), "banned again").toBeDefined();
});

test("[SAN8] a stored sanction is not overwritten with an older one", async () => {
  kept.set(keyOf(ban()), ban({ lifted: true, madeAt: at(500) }));
  const host = start([ban({ madeAt: at(100) })]);
  await clock.advance(1_000);
  expect([...kept.values()]).toMatchObject([{ lifted: true, madeAt: 500 }]);
  expect(host.banOf(acme, eve)).toBeUndefined();
});

test("[SAN20] a store that returns without its sanctions after a lost connection receives them again, also a lift", async () => {
  const bob = ban({ target: { kind: "user", tenant: acme, user: "bob" as UserId }, lifted: true });
  start([ban(), bob]);
  await clock.advance(1_000);
  expect(kept.size).toBe(2);
  kept.clear();
  await clock.advance(10_000);
  expect(kept.size, "it is asked only after a loss").toBe(0);
  breaks += 1;
  await clock.advance(1_000);
  expect([...kept.values()]).toEqual([ban(), bob]);
});

test("[SAN14] the store receives only what it lacks, until it has everything, also what could not be saved while it caught up", async () => {
  const bob = ban({ target: { kind: "user", tenant: acme, user: "bob" as UserId } });
  kept.set(keyOf(bob), bob);
  const tried: string[] = [];
  let goOn = (): void => {};
  const isBack = new Promise<void>((resolve) => (goOn = resolve));
  save = async (sanction) => {
    tried.push(sanction.reason);
    if (sanction.reason === "first") await isBack;
    if (sanction.reason === "second" && tried.length === 2) throw new Error("it is away again");
    kept.set(keyOf(sanction), sanction);
  };
  const host = start([ban({ reason: "first" })]);
  await clock.advance(0);
  host.impose(ban({ reason: "second", level: "read-only" }));
  await clock.advance(0);
  goOn();
  await clock.advance(3_000);
  expect([...new Set(tried)]).toEqual(["first", "second"]);
  expect([...kept.values()].map(({ reason }) => reason).sort()).toEqual(["", "first", "second"]);
});

test.each([
  ["lifts that ban", { lifted: true }, undefined],
  ["replaces that ban, although it ends earlier", { until: at(5_000) }, 5_000],
])("[SAN10] a sanction by people on a user whom a gateway banned %s, on all gateways", (_, change, until) => {
  const host = start();
  const imposed = ban({ by: "gateway", madeAt: at(9_000) }); // Made by a gateway whose clock is ahead.
  deliver(imposed);
  host.impose(ban({ madeAt: at(1_000), ...change }));
  expect(host.banOf(acme, eve)?.until).toBe(until);
  const elsewhere = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of [...published, imposed]) elsewhere.receiveSanction(sanction, at(1_000));
  expect(elsewhere.banOf(acme, eve)?.until).toBe(until);
});

test("[SAN18] a sanction is published again at growing intervals by the gateway that imposed it, until it ends or is replaced", async () => {
  requestSanctions = async () => [ban({ target: { kind: "user", tenant: acme, user: "mallory" as UserId } })];
  const host = start();
  await clock.advance(0);
  host.impose(ban({ until: at(100_000) }));
  const timesAfter = async (ms: number): Promise<number> => {
    await clock.advance(ms);
    return published.length;
  };
  expect([await timesAfter(4_000), await timesAfter(2_000), await timesAfter(8_000), await timesAfter(2_000)]).toEqual([1, 2, 2, 3]);
  expect(published.every((sanction) => sanction.target.kind === "user" && sanction.target.user === eve)).toBe(true);
  host.impose(ban({ lifted: true, madeAt: at(20_000), until: at(40_000) }));
  published = [];
  expect([await timesAfter(6_000), await timesAfter(60_000)]).toEqual([1, 2]);
  expect(published.every(({ lifted }) => lifted)).toBe(true);
});

test("[SAN19] a gateway asks the others again at growing intervals while none answers with a sanction", async () => {
  let questions = 0;
  requestSanctions = async () => (++questions < 4 ? [] : [ban({ until: at(200_000) })]);
  const host = start();
  const askedAfter = async (ms: number): Promise<number> => {
    await clock.advance(ms);
    return questions;
  };
  expect([await askedAfter(4_000), await askedAfter(2_000), await askedAfter(8_000), await askedAfter(2_000)]).toEqual([1, 2, 2, 3]);
  expect(await askedAfter(22_000)).toBe(4);
  expect(host.banOf(acme, eve)).toBeDefined();
  expect(await askedAfter(60_000)).toBe(4);
});
