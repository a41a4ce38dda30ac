import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { SanctionsLine, SanctionStore } from "../ports.ts";
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
/** Something was written to the store. */
let saved: Promise<void>;

beforeEach(() => {
  clock = new FakeClock(1_000);
  kept = new Map();
  told = [];
});

function start(known: readonly Sanction[] = []): SanctionsHost {
  const line: SanctionsLine = {
    tell: (sanction) => void told.push(sanction),
    onTold: (receive) => void (hear = receive),
    ask: async () => [],
    onAsked: () => {},
  };
  let onSaved = (): void => {};
  saved = new Promise((resolve) => (onSaved = resolve));
  const save = async (sanction: Sanction): Promise<void> => {
    kept.set(keyOf(sanction), sanction);
    onSaved();
  };
  const store: SanctionStore = { load: async () => [...kept.values()], save };
  const sanctions = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of known) sanctions.receive(sanction, clock.wallNow());
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
  for (const sanction of [...told, ban({ madeAt: at(9_000) })]) elsewhere.receive(sanction, at(1_000));
  expect(elsewhere.banOf(acme, eve)).toBeUndefined();
  host.impose(ban({ madeAt: at(1_000) }));
  expect(host.banOf(acme, eve), "banned again").toBeDefined();
});

test("[SAN8] what the store has is not overwritten with what it supersedes", async () => {
  kept.set(keyOf(ban()), ban({ lifted: true, madeAt: at(500) }));
  const host = start([ban({ madeAt: at(100) })]);
  await saved;
  expect([...kept.values()]).toMatchObject([{ lifted: true, madeAt: 500 }]);
  expect(host.banOf(acme, eve)).toBeUndefined();
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
  for (const sanction of [...told, imposed]) elsewhere.receive(sanction, at(1_000));
  expect(elsewhere.banOf(acme, eve)?.until).toBe(until);
});
