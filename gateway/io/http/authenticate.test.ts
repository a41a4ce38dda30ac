import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Sanction } from "../../../shared/bus/admin-messages.ts";
import type { ClientId, Millis, TenantId, UserId } from "../../../shared/ids.ts";
import type { ClientAddress } from "../../../shared/limits/client-address.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { gatewayMetrics } from "../../metrics.ts";
import type { Tokens } from "../../ports.ts";
import type { TokenVerdict } from "../../sessions/identity.ts";
import { httpTokens } from "./authenticate.ts";
import { activityRoutes } from "./board-routes.ts";
import { documentDeleteRoutes, documentHistoryRoutes } from "./document-routes.ts";
import { documentWriteRoutes } from "./document-write-routes.ts";
import { StreamedAnswers } from "./streamed-answers.ts";

const PLENTY = { burst: 1_000, perSecond: 1_000 };
const ALL_RIGHTS = { read: true, write: true, admin: true, award: true, boards: true };
const tokens: Tokens = {
  verify: async (user) => ({
    kind: "valid",
    identity: { tenant: "acme" as TenantId, user: user as UserId, name: user, rooms: ["*"], rights: ALL_RIGHTS, expiresAt: 1e9 as Millis },
  }),
};
/** "notes" is read-only for ann alone. */
const sanctions = {
  banOf: () => undefined,
  banOfAddress: () => undefined,
  restriction: (_: TenantId, user: UserId, room: string | undefined) =>
    user === "ann" && room === "acme.notes" ? ({ level: "read-only", reason: "for a while" } as Sanction) : undefined,
};

function routes(): HttpRoute[] {
  const deps = { clock: new FakeClock(), metrics: gatewayMetrics(new Registry()) };
  const options = { internalSecret: "", operatorSecret: "", eachUser: PLENTY, writersMax: 10, readersMax: 10, editBytesMax: 1_000 };
  const documents = { urls: () => [], firstHeartbeat: Promise.resolve(), ask: async () => undefined };
  const ports = {
    tokens: httpTokens({ tokens, sanctions, discipline: { receiveForgery: () => {} } }),
    documents,
    streamed: new StreamedAnswers({ eachMax: 1, allMax: 1 }, deps.metrics),
    storage: { fullOn: () => undefined },
    rooms: { positionOf: () => undefined },
    writes: { write: async () => ({ kind: "unanswered" }) as const },
    boards: { receiveWriter: () => {} },
    clientIdOf: () => "client" as ClientId,
  };
  const activities = activityRoutes(
    ports.tokens,
    { storeActivity: async () => "stored" },
    { kinds: ["comment"], reportRate: PLENTY, tenantBytes: { burst: 10_000, perSecond: 10_000 }, reportersMax: 10 },
    deps,
  );
  return [
    ...documentWriteRoutes(ports, options, deps),
    ...documentHistoryRoutes(ports, options, deps),
    ...documentDeleteRoutes(ports, options, deps),
    ...activities,
  ].filter(({ method }) => method !== "get");
}

test("[HTK1] a bearer who is read-only in a room changes nothing there over HTTP, and is not restricted elsewhere", async () => {
  const statusOf = async ({ answer }: HttpRoute, room: string, user: string): Promise<number> => {
    const header = (name: string): string =>
      ({ "authorization": `Bearer ${user}`, "content-type": "application/octet-stream" })[name] ?? "";
    const body = new TextEncoder().encode(JSON.stringify({ id: "one", activities: [{ user: "bob", kind: "comment", times: 1 }] }));
    return (
      await answer({
        parameters: [room, "1"],
        query: new URLSearchParams(),
        header,
        body,
        signal: new AbortController().signal,
        path: "",
        address: undefined,
      })
    ).status;
  };
  const paths = new Set(routes().map(({ path }) => path.split("/").at(-1)));
  for (const place of [":room", "activities", "document", "edits", "restore"]) expect(paths).toContain(place);
  for (const route of routes()) expect([route.path, await statusOf(route, "notes", "ann")]).toEqual([route.path, 403]);
  for (const route of routes())
    for (const [room, user] of [
      ["other", "ann"],
      ["notes", "bob"],
    ] as const)
      expect(await statusOf(route, room, user), route.path).not.toBe(403);
});

test("[HTK2] a bad token counts against the address that sent it; an expired or unchecked token does not", async () => {
  const forgeries: unknown[] = [];
  const verdicts: Readonly<Record<string, TokenVerdict>> = { forged: { kind: "refused", why: "no" }, late: { kind: "expired" } };
  const verify: Tokens["verify"] = async (token) => verdicts[token] ?? { kind: "unchecked" };
  const checked = httpTokens({ tokens: { verify }, sanctions, discipline: { receiveForgery: (from) => void forgeries.push(from) } });
  const kinds = [];
  for (const token of ["forged", "late", "whatever"]) kinds.push((await checked.verify(token, "203.0.113.5" as ClientAddress)).kind);
  expect(kinds).toEqual(["refused", "expired", "unchecked"]);
  expect(forgeries).toEqual(["203.0.113.5"]);
});
