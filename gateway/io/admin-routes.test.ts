import { expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { adminRoutes } from "./admin-routes.ts";
import type { HttpQuestion } from "./http-routes.ts";

const SECRET = "an operator's secret";
const ban = (until: number, by: Pick<Sanction, "by"> = {}): Sanction => ({ target: { kind: "user", tenant: "acme" as TenantId, user: "eve" as UserId }, level: "banned", ...by, madeAt: 0 as UnixMillis, until: until as UnixMillis, lifted: false, reason: "" });
const question = (body: object): HttpQuestion => ({
  path: "/v1/admin/lift", parameters: [], query: new URLSearchParams(), header: (name) => (name === "authorization" ? `Bearer ${SECRET}` : ""), address: undefined,
  body: new TextEncoder().encode(JSON.stringify(body)), signal: new AbortController().signal,
});

test("[ADN11] where both people and a gateway have banned somebody, a lift lasts for as long as either would have", async () => {
  for (const all of [[ban(90_000, { by: "gateway" }), ban(95_000)], [ban(95_000), ban(90_000, { by: "gateway" })]]) {
    const imposed: Sanction[] = [];
    const orders = { issue: () => Promise.reject(new Error("no order is given")), onOrder: () => {} };
    const routes = adminRoutes({ tokens: { verify: async () => ({ kind: "unchecked" }) }, orders, sanctions: { all, impose: (sanction) => void imposed.push(sanction) }, drain: () => 0 }, { internalSecret: SECRET }, { clock: new FakeClock(1_000) });
    const answer = await routes.find(({ path }) => path === "/v1/admin/lift")!.answer(question({ tenant: "acme", user: "eve" }));
    expect([answer.status, imposed]).toMatchObject([200, [{ lifted: true, until: 95_000 }]]);
  }
});
