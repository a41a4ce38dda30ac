/** Reads requests for usage by tenant and day, and writes the answer as JSON or CSV. Days are UTC. */

import type { TenantId, UnixMillis } from "../../shared/ids.ts";
import type { StoredUsage } from "../usage/usage-counts.ts";
import { dayAfter, dayCount, daysBetween, dayOf, parseDay, type UsageDay } from "../../shared/time/usage-day.ts";
import { errorAnswer, type HttpAnswer, jsonAnswer, retryAfter } from "./answers.ts";
import { type Authority, scopeOf } from "./authorize.ts";
import type { RouteRequest } from "./requests.ts";

/** `tenant` is undefined for all tenants. `days` are in order. */
export type UsageQuestion = {
  readonly tenant: TenantId | undefined;
  readonly days: readonly UsageDay[];
  readonly format: "json" | "csv";
};
export type UsageRow = { readonly day: UsageDay; readonly tenant: TenantId; readonly usage: StoredUsage };

/** Without `from`: the last days, the day of `to` included. */
const DAYS_DEFAULT = 31;

export const USAGE_NOT_STORED = errorAnswer(
  503,
  "no-redis",
  "usage by day is kept in Redis, and this gateway has none: set COROOM_REDIS_URL of all gateways",
);
export const USAGE_UNREACHABLE = errorAnswer(
  503,
  "unavailable",
  "Redis does not answer or refuses to, so usage cannot be read: try again. If it keeps failing, check COROOM_REDIS_URL and the permissions of its user (coroom redis-users)",
  retryAfter(5),
);

export function tooManyRows(rowsMax: number): HttpAnswer {
  return errorAnswer(400, "too-many-rows", `the answer would have more than ${rowsMax} rows: name a tenant, or ask for fewer days`);
}

export function usageQuestion(
  { query, header }: Pick<RouteRequest, "query" | "header">,
  authority: Authority,
  now: UnixMillis,
  { daysMax }: { readonly daysMax: number },
): UsageQuestion | HttpAnswer {
  const scope = scopeOf({ tenant: query.get("tenant") ?? undefined }, authority, "look");
  if ("status" in scope) return scope;
  const to = dayIn(query.get("to")) ?? dayOf(now);
  const from = dayIn(query.get("from")) ?? (to === "invalid" ? to : dayAfter(to, 1 - DAYS_DEFAULT));
  if (from === "invalid" || to === "invalid") return errorAnswer(400, "bad-request", "from, to: days in UTC, such as 2026-11-28");
  const count = dayCount(from, to); // Checked before the days are listed: a day may be 8,000 years away.
  if (count < 1 || count > daysMax) return errorAnswer(400, "bad-request", `from, to: 1 to ${daysMax} days, the later day in \`to\``);
  const format = formatOf(query.get("format"), header("accept"));
  if (format === undefined) return errorAnswer(400, "bad-request", "format: json or csv");
  return { tenant: authority === undefined && !query.has("tenant") ? undefined : scope.tenant, days: daysBetween(from, to), format };
}

/** Rows are in the order of days and tenants. */
export function usageAnswer({ days, format }: UsageQuestion, rows: readonly UsageRow[]): HttpAnswer {
  const shown = rows.map(rowShown);
  if (format === "json") return jsonAnswer(200, { from: days[0]!, to: days.at(-1)!, usage: shown });
  const lines = [CSV_COLUMNS.join(","), ...shown.map((row) => CSV_COLUMNS.map((column) => row[column]).join(","))];
  return { status: 200, headers: { "content-type": "text/csv; charset=utf-8" }, body: `${lines.join("\r\n")}\r\n` };
}

/** The tenants of one day, in the order of their names. */
export function rowsOf(day: UsageDay, tenants: ReadonlyMap<TenantId, StoredUsage>): UsageRow[] {
  const byName = [...tenants].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return byName.map(([tenant, usage]) => ({ day, tenant, usage }));
}

function rowShown({ day, tenant, usage: { connectionMs, ...usage } }: UsageRow) {
  const { connections, edits, editBytes, presenceMessages, receivedBytes, deliveredBytes, refusals, storedBytes, peakConnections } = usage;
  const connectionSeconds = Math.round(connectionMs / 1_000);
  return {
    day,
    tenant,
    connections,
    connectionSeconds,
    edits,
    editBytes,
    presenceMessages,
    receivedBytes,
    deliveredBytes,
    refusals,
    storedBytes,
    peakConnections,
  };
}

const CSV_COLUMNS = [
  "day",
  "tenant",
  "connections",
  "connectionSeconds",
  "edits",
  "editBytes",
  "presenceMessages",
  "receivedBytes",
  "deliveredBytes",
  "refusals",
  "storedBytes",
  "peakConnections",
] as const satisfies readonly (keyof ReturnType<typeof rowShown>)[];

function dayIn(given: string | null): UsageDay | "invalid" | undefined {
  return given === null ? undefined : (parseDay(given) ?? "invalid");
}

function formatOf(given: string | null, accept: string): "json" | "csv" | undefined {
  if (given === "json" || given === "csv") return given;
  if (given !== null) return undefined;
  return /\btext\/csv\b/i.test(accept) ? "csv" : "json";
}
