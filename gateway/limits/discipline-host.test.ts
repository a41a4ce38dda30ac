import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { Identity } from "../sessions/identity.ts";
import { AbuseScores } from "./abuse.ts";
import { DisciplineHost } from "./discipline-host.ts";
import { Quotas } from "./quotas.ts";
import { Sanctions } from "./sanctions.ts";

const FORGER = "203.0.113.21" as ClientAddress;
const eve: Identity = {
  tenant: "acme" as TenantId,
  user: "eve" as UserId,
  name: "Eve",
  rooms: [],
  rights: { read: true, write: true, admin: false, award: false },
  expiresAt: 1e9 as Millis,
};
/** Points to a ban: 100. A bad token has 5, a frame that is none 15. */
const abuseOptions = {
  abusePointsMax: 100,
  tenantAbusePointsMax: 1e6,
  abuseBanMs: 60_000,
  abuseBanMsMax: 3_600_000,
  connectionsPerIpMax: 100,
  suspectsMax: 100,
};

let clock: FakeClock;
let sanctions: Sanctions;
let discipline: DisciplineHost;
let imposed: Sanction[];

beforeEach(() => {
  clock = new FakeClock(1_000_000);
  sanctions = new Sanctions({ sanctionsMax: 10 });
  imposed = [];
  const quotas = new Quotas({
    limits: {
      "ip": 100,
      "tenant": 100,
      "tenant-rooms": 100,
      "room": 100,
      "tenant-edits": 100,
      "user-faults": 100,
      "address-faults": 100,
      "tenant-faults": 100,
      "full-room": 100,
    },
    toldShare: 0,
    reportSilenceMsMax: 3_000,
    creditMs: 75_000,
  });
  const impose = (made: Sanction): void => {
    imposed.push(made);
    take(sanctions.madeLast(made));
  };
  discipline = new DisciplineHost(
    sanctions,
    {
      gateway: "gw",
      sessions: new Map(),
      quotas,
      abuse: new AbuseScores(abuseOptions),
      metrics: gatewayMetrics(new Registry()),
      impose,
      carryOut: () => {},
    },
    clock,
  );
});

function take(sanction: Sanction): void {
  if (sanctions.receiveSanction(sanction, clock.wallNow())) discipline.receiveChanged(sanction);
}

function forge(tokens: number): void {
  for (let token = 0; token < tokens; token++) discipline.receiveForgery(FORGER);
}

const lengths = (): number[] => imposed.map(({ madeAt, until }) => until - madeAt);

test("[DIS1] one burst of bad tokens is one offence, however many of them are judged after the ban; only a later burst is a further one", () => {
  forge(100);
  expect(lengths()).toEqual([60_000]);
  clock.turn(60_000);
  sanctions.expire(clock.wallNow());
  forge(100);
  expect(lengths()).toEqual([60_000, 120_000]);
});

test("[DIS2] bad tokens judged after an operator has banned their address leave that ban as it is", () => {
  const until = (clock.wallNow() + 86_400_000) as UnixMillis;
  take({ target: { kind: "address", address: FORGER }, level: "banned", madeAt: clock.wallNow(), until, lifted: false, reason: "spam" });
  forge(100);
  expect([imposed, sanctions.banOfAddress(FORGER)?.until]).toEqual([[], until]);
});

test("[DIS3] nor do the faults of a user who is banned on all of its connections at once count", () => {
  for (let connection = 1; connection <= 20; connection++) discipline.receiveClose(connection as ConnectionId, eve, "badFrame");
  expect(lengths()).toEqual([60_000]);
});

test("[DIS4] a burst that two gateways ban for before they hear of each other is one offence to both", () => {
  forge(20);
  const elsewhere: Sanction = {
    ...imposed[0]!,
    madeAt: (imposed[0]!.madeAt + 30) as UnixMillis,
    until: (imposed[0]!.until + 30) as UnixMillis,
  };
  take(elsewhere);
  clock.turn(60_031);
  sanctions.expire(clock.wallNow());
  forge(20);
  expect(lengths()).toEqual([60_000, 120_000]);
});

test("[DIS5] after a ban that people lifted each further burst is a further offence", () => {
  const ban: Sanction = {
    target: { kind: "address", address: FORGER },
    level: "banned",
    madeAt: clock.wallNow(),
    until: (clock.wallNow() + 86_400_000) as UnixMillis,
    lifted: false,
    reason: "spam",
  };
  take(ban);
  clock.turn(1_000);
  take({ ...ban, madeAt: clock.wallNow(), lifted: true });
  for (const waitMs of [120_001, 240_001, 0]) {
    forge(100);
    clock.turn(waitMs);
    for (const over of sanctions.expire(clock.wallNow())) discipline.receiveChanged(over);
  }
  expect(lengths()).toEqual([120_000, 240_000, 480_000]);
});
