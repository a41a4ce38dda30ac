import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { GatewayId, Millis, RoomKey, TenantId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import { AbuseScores } from "./abuse.ts";
import { shareCounts, type Sharing } from "./quotas-host.ts";
import { Quotas } from "./quotas.ts";

const silent = (): void => {};
const silentLog = { debug: silent, info: silent, warn: silent, error: silent };

function quotasOf(): Quotas {
  return new Quotas({
    limits: {
      "ip": 1,
      "tenant": 1,
      "tenant-rooms": 1,
      "room": 1,
      "tenant-edits": 1,
      "user-faults": 1,
      "address-faults": 1,
      "tenant-faults": 1,
      "full-room": 1,
      "user": 2,
      "user-edits": 2,
    },
    reportShare: 0,
    reportSilenceMsMax: 3_000,
    creditMs: 75_000,
    deliveries: { room: { burst: 1e9, perSecond: 1e9 }, tenant: { burst: 1e9, perSecond: 1e9 } },
  });
}

function abuseOf(): AbuseScores {
  return new AbuseScores(
    { abusePointsMax: 1, tenantAbusePointsMax: 1, suspectsMax: 1, abuseBanMs: 1, abuseBanMsMax: 1, connectionsPerIpMax: 1 },
    () => 0,
  );
}

test("[QUOH1] the log names a tenant at its limit, and the setting to raise, once a minute", async () => {
  const clock = new FakeClock();
  const quotas = quotasOf();
  const lines: unknown[] = [];
  const log = { ...silentLog, warn: (about: object, text: string) => void lines.push([about, text]) };
  shareCounts({ quotas, abuse: abuseOf() }, { onReport: silent, publishReport: silent }, "gateway" as GatewayId, {
    clock,
    log,
    metrics: gatewayMetrics(new Registry()),
    backbone: { isUp: true },
  });
  for (const number of [1, 2, 3]) {
    quotas.receiveConnection(number as ConnectionId, undefined);
    quotas.admit({ tenant: "acme" as TenantId, user: `user-${number}` }, number as ConnectionId, clock.now());
  }
  await clock.advance(58_000);
  expect(lines).toEqual([]);
  await clock.advance(1_000);
  expect(lines).toEqual([
    [
      { tenant: "acme", limit: "tenant", times: 2 },
      "a tenant is at its limit: raise COROOM_CONNECTIONS_PER_TENANT_MAX, or talk to the tenant",
    ],
  ]);
  await clock.advance(60_000);
  expect(lines).toHaveLength(1);
});

test("[QUOH2] a gateway that stops reports that it has no counts, unless NATS is lost", async () => {
  const clock = new FakeClock();
  const reported: number[] = [];
  const share = (isUp: boolean): Sharing => {
    const quotas = quotasOf();
    quotas.receiveConnection(1 as ConnectionId, "203.0.113.7" as ClientAddress);
    return shareCounts(
      { quotas, abuse: abuseOf() },
      { onReport: silent, publishReport: ({ counts }) => void reported.push(counts.length) },
      "gateway" as GatewayId,
      { clock, log: silentLog, metrics: gatewayMetrics(new Registry()), backbone: { isUp } },
    );
  };
  share(true).stop();
  expect(reported).toEqual([1, 0]);
  share(false).stop();
  await clock.advance(5_000);
  expect(reported).toEqual([1, 0]);
});

test("[QUOH3] a draining gateway omits a connection from its reports from the time at which it is to move, and counts it itself until it ends", async () => {
  const clock = new FakeClock();
  const quotas = quotasOf();
  quotas.receiveConnection(1 as ConnectionId, "203.0.113.7" as ClientAddress);
  quotas.admit({ tenant: "acme" as TenantId, user: "ann" }, 1 as ConnectionId, clock.now());
  quotas.receiveMembers("acme.notes" as RoomKey, 1);
  const reported: string[][] = [];
  const sharing = shareCounts(
    { quotas, abuse: abuseOf() },
    { onReport: silent, publishReport: ({ counts }) => void reported.push(counts.map(({ kind }) => kind)) },
    "gateway" as GatewayId,
    { clock, log: silentLog, metrics: gatewayMetrics(new Registry()), backbone: { isUp: true } },
  );
  sharing.handOver(new Map([[1 as ConnectionId, (clock.now() + 2_000) as Millis]]));
  await clock.advance(2_000);
  expect(reported.map((kinds) => kinds.toSorted())).toEqual([["room", "tenant", "user"], ["room", "tenant", "user"], ["room"], ["room"]]);
  quotas.receiveConnection(2 as ConnectionId, undefined);
  expect(quotas.admit({ tenant: "acme" as TenantId, user: "bob" }, 2 as ConnectionId, clock.now()), "its place is still taken here").toBe(
    "tenant",
  );
});
