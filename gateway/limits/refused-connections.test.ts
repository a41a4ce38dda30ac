import { expect, test } from "vitest";

import type { Millis, TenantId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import { RefusedConnections } from "./refused-connections.ts";

const [acme, place] = ["acme" as TenantId, "203.0.113.9" as ClientAddress];

/** Passes seconds with so many refusals each, and returns the reports with the second of each. */
function run(perSecond: readonly number[], close: CloseName = "tokenExpired", of: (index: number) => string = () => "acme") {
  const refused = new RefusedConnections(0 as Millis);
  let sent = 0;
  return perSecond.flatMap((count, second) => {
    const at = (second * 1_000) as Millis;
    for (let each = 0; each < count; each++)
      refused.receiveRefusal({ close, tenant: of(sent++) as TenantId, address: second % 2 === 0 ? place : undefined }, at);
    const report = refused.receiveTick((at + 1_000) as Millis);
    return report === undefined ? [] : [{ second: second + 1, ...report }];
  });
}
const seconds = (count: number, each: number): number[] => Array.from({ length: count }, () => each);

test("[REFC1] many refused connections are reported within seconds, and their end once, with their number and their duration", () => {
  const reports = run([...seconds(30, 20), ...seconds(120, 0)]);
  expect(reports).toMatchObject([
    { second: 3, state: "refused", close: "tokenExpired", count: 60, forMs: 3_000, ofTenant: "acme", address: place },
    { state: "normal", close: "tokenExpired", count: 600, forMs: 29_000, ofTenant: "acme" },
  ]);
  expect(reports).toHaveLength(2);
  expect(reports[1]!.second).toBeLessThanOrEqual(150);
});

test("[REFC2] single refused connections, and those of a gateway that stops, are not reported", () => {
  expect(run(seconds(60, 4))).toEqual([]);
  expect(run(seconds(60, 50), "goingAway")).toEqual([]);
});

test("[REFC3] a rate around the threshold is one episode", () => {
  expect(run([...seconds(10, 6), ...seconds(10, 4), ...seconds(10, 6), ...seconds(120, 0)]).map(({ state }) => state)).toEqual([
    "refused",
    "normal",
  ]);
});

test("[REFC4] a tenant that caused half of the refusals is named, however many others there are; no other tenant is named", () => {
  const spread = (index: number): string => `tenant-${index}`;
  expect(run(seconds(10, 500), "unauthorized", (index) => (index % 2 === 0 ? acme : spread(index)))[0]).toMatchObject({ ofTenant: "acme" });
  expect(run(seconds(10, 500), "unauthorized", spread)[0]).not.toHaveProperty("ofTenant");
});

test("[REFC5] bursts with pauses are one episode, so that a client without a token cannot fill the events", () => {
  const bursts = Array.from({ length: 20 }, () => [60, ...seconds(14, 0)]).flat();
  expect(run([...bursts, ...seconds(120, 0)]).map(({ state, count }) => [state, count])).toEqual([
    ["refused", 60],
    ["normal", 1_200],
  ]);
});
