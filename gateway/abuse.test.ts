import { expect, test } from "vitest";

import type { Millis, TenantId, UserId } from "../shared/ids.ts";
import { Abuse, type Fault, type Suspect } from "./abuse.ts";
import type { ClientAddress } from "./client-address.ts";

const at = (ms: number): Millis => ms as Millis;
const eve: Suspect = { kind: "user", tenant: "acme" as TenantId, user: "eve" as UserId };
const office: Suspect = { kind: "address", address: "203.0.113.7" as ClientAddress };
const watch = (suspectsMax = 100): Abuse => new Abuse({ abusePointsMax: 100, abuseBanMs: 60_000, abuseBanMsMax: 200_000, connectionsPerIpMax: 100, suspectsMax });

/** What comes of so many at once, each time that it changes. */
function measures(abuse: Abuse, suspect: Suspect, fault: Fault, times: number, from = 0): string[] {
  const seen: string[] = [];
  for (let time = 0; time < times; time++) {
    const { kind } = abuse.receiveFault(suspect, fault, at(from));
    if (kind !== seen.at(-1)) seen.push(kind);
  }
  return seen;
}

test("[ABU1] faults add up: nothing at first, then held off, then banned, and then it begins anew", () => {
  const abuse = watch();
  expect(measures(abuse, eve, "bad-frame", 3)).toEqual(["none"]);
  expect(measures(abuse, eve, "bad-frame", 4)).toEqual(["hold-off", "ban"]);
  expect(abuse.standing(eve, at(0))).toEqual({ kind: "none" });
});

test("[ABU2] each further ban is twice as long, up to the longest; whoever behaves for a day begins anew", () => {
  const abuse = watch();
  const ban = (now: number): number => {
    for (;;) {
      const measure = abuse.receiveFault(eve, "bad-frame", at(now));
      if (measure.kind === "ban") return measure.banMs;
    }
  };
  expect([ban(0), ban(70_000), ban(200_000), ban(500_000)]).toEqual([60_000, 120_000, 200_000, 200_000]);
  expect(ban(500_000 + 86_400_001)).toBe(60_000);
});

test("[ABU3] faults fade: whoever errs now and then is never held off, and held off is nobody for longer than said", () => {
  const abuse = watch();
  for (let minute = 0; minute < 100; minute++) expect(measures(abuse, eve, "too-fast", 4, minute * 60_000)).toEqual(["none"]);
  const later = 100 * 60_000;
  expect(measures(abuse, eve, "too-fast", 6, later).at(-1)).toBe("hold-off");
  const standing = abuse.standing(eve, at(later));
  expect(standing).toEqual({ kind: "hold-off", retryAfterMs: 6_000 });
  expect(abuse.standing(eve, at(later + 6_000))).toEqual({ kind: "none" });
});

test("[ABU4] everybody of an office coming back at once is no storm, everybody four times in a minute is", () => {
  expect(measures(watch(), office, "connect", 100)).toEqual(["none"]);
  expect(measures(watch(), office, "connect", 400)).toEqual(["none", "hold-off", "ban"]);
  expect(measures(watch(), eve, "connect", 150)).toEqual(["none"]);
});

test("[ABU5] so many are watched; whoever was heard of longest ago is forgotten", () => {
  const abuse = watch(2);
  measures(abuse, eve, "bad-frame", 5);
  for (const user of ["a", "b"]) abuse.receiveFault({ ...eve, user: user as UserId }, "connect", at(0));
  expect([abuse.watched, abuse.standing(eve, at(0)).kind]).toEqual([2, "none"]);
});
