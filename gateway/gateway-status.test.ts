import { expect, test } from "vitest";

import { decideUpgrade, isLogFull, type UpgradeFacts, upgradeRefusal } from "./gateway-status.ts";

const facts: UpgradeFacts = { isOriginAllowed: true, unready: undefined, hasRoom: true, isAddressWithinLimit: () => true };

test("[GST1] an upgrade is checked for its origin first, then for the gateway's state, its number of connections, and the address", () => {
  const reasonOf = (given: Partial<UpgradeFacts>) => {
    const decision = decideUpgrade({ ...facts, ...given });
    return decision.kind === "refuse" ? decision.reason : undefined;
  };
  const all = { isOriginAllowed: false, unready: "draining", hasRoom: false, isAddressWithinLimit: () => false } as const;
  expect(reasonOf({})).toBeUndefined();
  expect(reasonOf(all)).toBe("origin");
  expect(reasonOf({ ...all, isOriginAllowed: true })).toBe("draining");
  expect(reasonOf({ ...all, isOriginAllowed: true, unready: undefined })).toBe("full");
  expect(reasonOf({ isAddressWithinLimit: () => false })).toBe("ip");
});

test("[GST2] a refused origin is answered with 403, an address above its limit with 429, a gateway that cannot accept with 503", () => {
  expect(upgradeRefusal("origin").status).toMatch(/^403 /);
  expect(upgradeRefusal("ip").status).toMatch(/^429 /);
  for (const reason of ["full", "degraded", "draining", "misconfigured"] as const) expect(upgradeRefusal(reason).status).toMatch(/^503 /);
});

test("[GST3] a gateway is not ready while no room server can store edits; one that can is enough", () => {
  const full = { logObstacle: "the storage of the log is full" };
  expect(isLogFull([])).toBe(false);
  expect(isLogFull([full, {}])).toBe(false);
  expect(isLogFull([full, full])).toBe(true);
});
