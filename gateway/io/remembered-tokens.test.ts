import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Millis, TenantId, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { Identity, TokenVerdict } from "../sessions/identity.ts";
import { gatewayMetrics } from "../metrics.ts";
import { rememberedTokens } from "./jwt-tokens.ts";

const identity: Identity = {
  tenant: "acme" as TenantId,
  user: "ann" as UserId,
  name: "Ann",
  rooms: [],
  rights: { read: true, write: true, admin: false, award: false, boards: false },
  expiresAt: 1e15 as Millis,
};

function remembering(verdicts: Readonly<Record<string, TokenVerdict>>, clock = new FakeClock()) {
  const checked: string[] = [];
  const verify = (token: string): Promise<TokenVerdict> => (checked.push(token), Promise.resolve(verdicts[token]!));
  return {
    checked,
    tokens: rememberedTokens(
      { verify },
      { knownTokensMax: 10, knownTokenMsMax: 60_000 },
      { clock, metrics: gatewayMetrics(new Registry()) },
    ),
  };
}

test("[TOK5] a valid token is not checked again", async () => {
  const { checked, tokens } = remembering({ good: { kind: "valid", identity } });
  expect(await tokens.verify("good")).toEqual({ kind: "valid", identity });
  expect(await tokens.verify("good")).toEqual({ kind: "valid", identity });
  expect(checked).toEqual(["good"]);
});

test("[TOK6] a token that was refused or could not be checked is checked each time", async () => {
  const { checked, tokens } = remembering({ forged: { kind: "refused", why: "" }, old: { kind: "expired" }, later: { kind: "unchecked" } });
  for (const token of ["forged", "old", "later", "forged", "old", "later"]) await tokens.verify(token);
  expect(checked).toEqual(["forged", "old", "later", "forged", "old", "later"]);
});

test("[TOK8] nothing of a token is held one second after the time for which it is remembered", async () => {
  const clock = new FakeClock();
  const { tokens } = remembering({ first: { kind: "valid", identity }, second: { kind: "valid", identity } }, clock);
  await tokens.verify("first");
  clock.turn(50_000);
  await tokens.verify("second");
  clock.turn(61_000);
  expect(clock.pending).toBe(0); // No timer is left.
});
