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
/** Of the others: what they told comes in, what they are told. */
let hear: (sanction: Sanction) => void;
let told: Sanction[];
/** Carries out what is written to the store: as it is told to here. */
let save: SanctionStore["save"];

beforeEach(() => {
  clock = new FakeClock(1_000);
  kept = new Map();
  told = [];
  save = async (sanction) => void kept.set(keyOf(sanction), sanction);
});

function start(known: readonly Sanction[] = []): SanctionsHost {
  const line: SanctionsBus = {
    publishSanction: (sanction) => void told.push(sanction),
    onSanction: (receive) => void (hear = receive),
    requestSanctions: async () => [],
    onRequest: () => {},
  };
  const store: SanctionStore = { load: async () => [...kept.values()], save: (sanction) => save(sanction) };
  const sanctions = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of known) sanctions.receiveSanction(sanction, clock.wallNow());
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, fatal: () => {} };
  const host = new SanctionsHost(sanctions, line, store, {
    clock,
    log,
    metrics: gatewayMetrics(new Registry()),
    backbone: { isUp: true, losses: 0 },
  });
  host.start(() => {});
  return host;
}

test("[SAN7] a lift holds although the ban was made where the date is ahead, here and wherever it is heard", () => {
  const host = start();
  hear(ban({ madeAt: at(9_000) }));
  host.impose(ban({ lifted: true, madeAt: at(1_000) }));
  expect(host.banOf(acme, eve)).toBeUndefined();
  const elsewhere = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of [...told, ban({ madeAt: at(9_000) })]) elsewhere.receiveSanction(sanction, at(1_000));
  expect(elsewhere.banOf(acme, eve)).toBeUndefined();
  host.impose(ban({ madeAt: at(1_000) }));
  expect(host.banOf(acme, eve), "banned again").toBeDefined();
});

test("[SAN8] what the store has is not overwritten with what it supersedes", async () => {
  kept.set(keyOf(ban()), ban({ lifted: true, madeAt: at(500) }));
  const host = start([ban({ madeAt: at(100) })]);
  await clock.advance(1_000);
  expect([...kept.values()]).toMatchObject([{ lifted: true, madeAt: 500 }]);
  expect(host.banOf(acme, eve)).toBeUndefined();
});

test("[SAN14] the store is told only what it misses, until it has all of it: also what could not be saved while it caught up", async () => {
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
  ["lifts it", { lifted: true }, undefined],
  ["is the ban that holds, though it ends sooner", { until: at(5_000) }, 5_000],
])("[SAN10] what people say of somebody whom a gateway banned %s, here and wherever it is heard", (_, word, until) => {
  const host = start();
  const imposed = ban({ by: "gateway", madeAt: at(9_000) }); // Where the date is ahead.
  hear(imposed);
  host.impose(ban({ madeAt: at(1_000), ...word }));
  expect(host.banOf(acme, eve)?.until).toBe(until);
  const elsewhere = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of [...told, imposed]) elsewhere.receiveSanction(sanction, at(1_000));
  expect(elsewhere.banOf(acme, eve)?.until).toBe(until);
});
