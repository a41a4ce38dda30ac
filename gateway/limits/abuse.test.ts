import { expect, test } from "vitest";

import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { AbuseScores, type BanTime, type AbuseFault, type Suspect } from "./abuse.ts";

const at = (ms: number): Millis => ms as Millis;
const eve: Suspect = { kind: "user", tenant: "acme" as TenantId, user: "eve" as UserId };
const office: Suspect = { kind: "address", address: "203.0.113.7" as ClientAddress };
const options = {
  abusePointsMax: 100,
  tenantAbusePointsMax: 1_000,
  abuseBanMs: 60_000,
  abuseBanMsMax: 200_000,
  connectionsPerIpMax: 100,
  suspectsMax: 100,
};
const watch = (suspectsMax = 100): AbuseScores => new AbuseScores({ ...options, suspectsMax });

const ban = (madeAt: number, forMs = 60_000): BanTime => ({ madeAt: madeAt as UnixMillis, until: (madeAt + forMs) as UnixMillis });

/** The measures after this many faults at once, each change once. */
function measures(abuse: AbuseScores, suspect: Suspect, fault: AbuseFault, times: number, from = 0): string[] {
  const seen: string[] = [];
  for (let time = 0; time < times; time++) {
    const { kind } = abuse.receiveFault(suspect, fault, at(from));
    if (kind !== seen.at(-1)) seen.push(kind);
  }
  return seen;
}

test("[ABU1] faults add up to a delay, then to a ban, and then the score starts again", () => {
  const abuse = watch();
  expect(measures(abuse, eve, "bad-frame", 3)).toEqual(["none"]);
  expect(measures(abuse, eve, "bad-frame", 4)).toEqual(["hold-off", "ban"]);
  abuse.receiveBan(eve, ban(0), at(0));
  expect(abuse.holdOffOf(eve, at(0))).toEqual({ kind: "none" });
});

test("[ABU2] each further ban is twice as long, up to a maximum; a day without faults starts again", () => {
  const abuse = watch();
  const banned = (now: number): number => {
    for (;;) {
      const measure = abuse.receiveFault(eve, "bad-frame", at(now));
      if (measure.kind !== "ban") continue;
      abuse.receiveBan(eve, ban(now, measure.banMs), at(now));
      return measure.banMs;
    }
  };
  expect([banned(0), banned(70_000), banned(200_000), banned(500_000)]).toEqual([60_000, 120_000, 200_000, 200_000]);
  expect(banned(500_000 + 86_400_001)).toBe(60_000);
});

test("[ABU3] faults fade: rare faults never cause a delay, and no delay exceeds the announced one", () => {
  const abuse = watch();
  for (let minute = 0; minute < 100; minute++) expect(measures(abuse, eve, "too-fast", 4, minute * 60_000)).toEqual(["none"]);
  const later = 100 * 60_000;
  expect(measures(abuse, eve, "too-fast", 6, later).at(-1)).toBe("hold-off");
  const delay = abuse.holdOffOf(eve, at(later));
  expect(delay).toEqual({ kind: "hold-off", retryAfterMs: 6_000 });
  expect(abuse.holdOffOf(eve, at(later + 6_000))).toEqual({ kind: "none" });
});

test("[ABU4] an office that reconnects once is accepted; four times within a minute is abuse", () => {
  expect(measures(watch(), office, "connect", 100)).toEqual(["none"]);
  expect(measures(watch(), office, "connect", 400)).toEqual(["none", "hold-off", "ban"]);
  expect(measures(watch(), eve, "connect", 150)).toEqual(["none"]);
});

test("[ABU5] the number of suspects is bounded, and the least recent is forgotten", () => {
  const abuse = watch(2);
  measures(abuse, eve, "bad-frame", 5);
  for (const user of ["a", "b"]) abuse.receiveFault({ ...eve, user: user as UserId }, "connect", at(0));
  expect([abuse.watched, abuse.holdOffOf(eve, at(0)).kind]).toEqual([2, "none"]);
});

/** Two gateways that exchange their points at the end of each second. */
function twoGateways() {
  const reported = [new Map<string, number>(), new Map<string, number>()] as const;
  const [one, two] = [
    new AbuseScores(options, (_, key) => reported[1].get(key) ?? 0),
    new AbuseScores(options, (_, key) => reported[0].get(key) ?? 0),
  ];
  const endSecond = (now: number): void =>
    [one, two].forEach((abuse, index) => abuse.endSecond(at(now)).forEach(({ key, points }) => reported[index]!.set(key, points)));
  return { one, two, endSecond };
}

test("[ABU6] a user of two gateways has the points of both", () => {
  const { one, two, endSecond } = twoGateways();
  expect(measures(one, eve, "bad-frame", 3)).toEqual(["none"]);
  expect(measures(two, eve, "bad-frame", 3)).toEqual(["none"]);
  endSecond(0);
  expect(two.holdOffOf(eve, at(0)).kind).toBe("hold-off");
  expect(measures(two, eve, "bad-frame", 1)).toEqual(["ban"]);
});

test("[ABU7] a ban by another gateway resets the score here too, and the next ban is longer", () => {
  const { one, two, endSecond } = twoGateways();
  measures(one, eve, "bad-frame", 6);
  endSecond(0);
  one.receiveBan(eve, ban(0), at(0));
  two.receiveBan(eve, ban(0), at(0));
  endSecond(1_000);
  expect([one, two].map((abuse) => abuse.holdOffOf(eve, at(1_000)).kind)).toEqual(["none", "none"]);
  expect(measures(two, eve, "bad-frame", 6, 1_000).at(-1)).toBe("hold-off");
  expect(two.receiveFault(eve, "bad-frame", at(1_000))).toEqual({ kind: "ban", banMs: 120_000 });
});

test("[ABU8] points do not fade faster when they are spread over gateways", () => {
  const { one, two, endSecond } = twoGateways();
  for (const abuse of [one, two]) measures(abuse, eve, "too-fast", 4);
  for (let second = 0; second < 24; second++) endSecond(second * 1_000);
  const left = [one, two].reduce((sum, abuse) => sum + (abuse.endSecond(at(24_000))[0]?.points ?? 0), 0);
  expect(left).toBeGreaterThanOrEqual(38); // 80 points, less 40 in a minute, and not less twice 40.
  expect(left).toBeLessThanOrEqual(41);
});

test("[ABU9] a tenant is delayed and never banned; a tenant without points is no longer reported", () => {
  const abuse = watch();
  const acme: Suspect = { kind: "tenant", tenant: "acme" as TenantId };
  expect(measures(abuse, acme, "bad-frame", 33)).toEqual(["none"]);
  expect(measures(abuse, acme, "bad-frame", 1_000)).toEqual(["hold-off"]);
  expect(abuse.holdOffOf(acme, at(0))).toEqual({ kind: "hold-off", retryAfterMs: 90_000 });
  expect(abuse.endSecond(at(0))).toEqual([{ kind: "tenant", key: "acme", points: 2_000 }]);
  expect(abuse.endSecond(at(1e9))).toEqual([{ kind: "tenant", key: "acme", points: 0 }]);
  expect(abuse.endSecond(at(1e9))).toEqual([]);
});

test("[ABU10] a suspect without points is forgotten, a banned one after a day", () => {
  const abuse = watch();
  abuse.receiveBan(office, ban(0), at(0));
  abuse.receiveFault(eve, "connect", at(0));
  abuse.endSecond(at(0));
  expect(abuse.watched).toBe(2);
  abuse.endSecond(at(1_000));
  expect(abuse.watched).toBe(1);
  abuse.endSecond(at(86_400_000));
  expect(abuse.watched).toBe(1);
  abuse.endSecond(at(86_400_001));
  expect(abuse.watched).toBe(0);
});

test("[ABU11] overlapping bans are one offence in any order; the next ban is twice as long, not four times", () => {
  const orders = [
    [ban(0), ban(40)],
    [ban(40), ban(0)],
  ] as const;
  const next = orders.map((bans) => {
    const abuse = watch();
    for (const one of bans) abuse.receiveBan(eve, one, at(50));
    measures(abuse, eve, "bad-frame", 6, 60_100);
    return abuse.receiveFault(eve, "bad-frame", at(60_100));
  });
  expect(next).toEqual([
    { kind: "ban", banMs: 120_000 },
    { kind: "ban", banMs: 120_000 },
  ]);
});
