import { expect, test } from "vitest";

import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Identity } from "../sessions/identity.ts";
import { noUsage } from "../usage/usage-counts.ts";
import type { UsageDay } from "../../shared/time/usage-day.ts";
import type { HttpAnswer } from "./answers.ts";
import { rowsOf, usageAnswer, usageQuestion } from "./usage-requests.ts";

const NOW = Date.UTC(2026, 10, 28, 12) as UnixMillis;
const admin = (rooms: readonly string[] = ["*"]): Identity => ({
  tenant: "acme" as TenantId,
  user: "ann" as UserId,
  name: "Ann",
  rooms,
  rights: { read: true, write: true, admin: true, award: false, boards: false },
  expiresAt: 1e12 as Millis,
});

function ask(query: string, authority: Identity | undefined = undefined, accept = "") {
  const request = { query: new URLSearchParams(query), header: (name: string) => (name === "accept" ? accept : "") };
  return usageQuestion(request, authority, NOW, { daysMax: 100 });
}
const errorOf = (answer: object): unknown =>
  "status" in answer ? [answer.status, JSON.parse(String((answer as HttpAnswer).body)).error] : answer;

test("[USQ1] an operator reads all tenants or one, and an administrator only the whole of its own tenant", () => {
  expect(ask("")).toMatchObject({ tenant: undefined });
  expect(ask("tenant=beta")).toMatchObject({ tenant: "beta" });
  expect(ask("", admin())).toMatchObject({ tenant: "acme" });
  expect(ask("tenant=acme", admin())).toMatchObject({ tenant: "acme" });
  expect(errorOf(ask("tenant=beta", admin()))).toEqual([403, "not-allowed"]);
  expect(errorOf(ask("", admin(["notes"])))).toEqual([403, "not-allowed"]);
  expect(errorOf(ask("tenant=(other)"))).toEqual([400, "bad-request"]);
});

test("[USQ2] a request covers the last 31 days, or the days that it names, at most 100", () => {
  const daysOf = (query: string): unknown => {
    const asked = ask(query);
    return "status" in asked ? errorOf(asked) : [asked.days[0], asked.days.at(-1), asked.days.length];
  };
  expect(daysOf("")).toEqual(["2026-10-29", "2026-11-28", 31]);
  expect(daysOf("to=2026-03-31")).toEqual(["2026-03-01", "2026-03-31", 31]);
  expect(daysOf("from=2026-11-27")).toEqual(["2026-11-27", "2026-11-28", 2]);
  expect(daysOf("from=2026-08-21")).toEqual(["2026-08-21", "2026-11-28", 100]);
  for (const wrong of [
    "from=2026-08-20",
    "from=2026-11-29",
    "from=yesterday",
    "to=2026-02-30",
    "from=",
    "from=1970-01-01&to=9999-12-31",
    "to=0000-01-01",
  ])
    expect(daysOf(wrong), wrong).toEqual([400, "bad-request"]);
});

test("[USQ3] the answer is CSV if the query or the Accept header asks for it", () => {
  expect(ask("", undefined, "*/*")).toMatchObject({ format: "json" });
  expect(ask("", undefined, "text/csv, application/json;q=0.5")).toMatchObject({ format: "csv" });
  expect(ask("format=csv")).toMatchObject({ format: "csv" });
  expect(ask("format=json", undefined, "text/csv")).toMatchObject({ format: "json" });
  expect(errorOf(ask("format=xml"))).toEqual([400, "bad-request"]);
});

test("[USQ4] rows are in the order of days and tenants, with the same values in JSON and CSV", () => {
  const day = "2026-11-28" as UsageDay;
  const none = { ...noUsage(), storedBytes: 0, peakConnections: 0 };
  const usage = { ...none, connections: 2, peakConnections: 5, connectionMs: 61_500, edits: 3, editBytes: 40, deliveredBytes: 2 ** 53 - 1 };
  const rows = rowsOf(
    day,
    new Map([
      ["beta" as TenantId, { ...none, storedBytes: 2 ** 40 }],
      ["acme" as TenantId, usage],
    ]),
  );
  const question = { tenant: undefined, days: [day], format: "json" as const };
  const { from, to, usage: shown } = JSON.parse(String(usageAnswer(question, rows).body));
  expect([from, to]).toEqual([day, day]);
  expect(shown).toMatchObject([
    {
      day,
      tenant: "acme",
      connections: 2,
      connectionSeconds: 62,
      edits: 3,
      editBytes: 40,
      deliveredBytes: 2 ** 53 - 1,
      storedBytes: 0,
      peakConnections: 5,
    },
    { day, tenant: "beta", connections: 0, connectionSeconds: 0, storedBytes: 2 ** 40, peakConnections: 0 },
  ]);
  const csv = usageAnswer({ ...question, format: "csv" }, rows);
  expect(csv.headers).toEqual({ "content-type": "text/csv; charset=utf-8" });
  const [columns, ...lines] = String(csv.body).trimEnd().split("\r\n");
  expect(columns!.split(",")).toEqual(Object.keys(shown[0]));
  expect(lines.map((line) => line.split(","))).toEqual(shown.map((row: object) => Object.values(row).map(String)));
});
