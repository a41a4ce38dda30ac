import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
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
  rights: { read: true, write: true, admin: false, award: false, boards: false },
  expiresAt: 1e9 as Millis,
};
/** 100 points are a ban. A bad token counts 5 points, an invalid frame 15. */
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
      "user": 100,
      "user-edits": 100,
    },
    reportShare: 0,
    reportSilenceMsMax: 3_000,
    creditMs: 75_000,
    deliveries: { room: { burst: 1e9, perSecond: 1e9 }, tenant: { burst: 1e9, perSecond: 1e9 } },
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

test("[DIS1] a burst of bad tokens leads to one ban, even if many of them are checked after the ban; a later burst leads to another", () => {
  forge(100);
  expect(lengths()).toEqual([60_000]);
  clock.turn(60_000);
  sanctions.expire(clock.wallNow());
  forge(100);
  expect(lengths()).toEqual([60_000, 120_000]);
});

test("[DIS2] bad tokens that are judged after an operator banned their address do not change that ban", () => {
  const until = (clock.wallNow() + 86_400_000) as UnixMillis;
  take({ target: { kind: "address", address: FORGER }, level: "banned", madeAt: clock.wallNow(), until, lifted: false, reason: "spam" });
  forge(100);
  expect([imposed, sanctions.banOfAddress(FORGER)?.until]).toEqual([[], until]);
});

test("[DIS3] faults of one user on many connections at once are one offence", () => {
  for (let connection = 1; connection <= 20; connection++) discipline.receiveClose(connection as ConnectionId, eve, "badFrame");
  expect(lengths()).toEqual([60_000]);
});

test("[DIS6] bytes of another protocol instead of HELLO raise the abuse score as much as silence", () => {
  for (let attempt = 0; attempt < 49; attempt++) discipline.receiveClose(attempt as ConnectionId, eve, "otherProtocol");
  expect(imposed).toEqual([]);
  for (let attempt = 0; attempt < 2; attempt++) discipline.receiveClose(attempt as ConnectionId, eve, "otherProtocol");
  expect(lengths()).toEqual([60_000]);
});

test("[DIS4] a burst for which two gateways impose a ban at the same time is one offence for both", () => {
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

test("[DIS5] after people lifted a ban each further burst is a further offence", () => {
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
