/** Prints usage by tenant and day from a gateway (`gateway/usage-openapi.json`), as a table or as CSV. */

import { z } from "zod";

import { SettingError, type Values } from "../shared/settings/settings.ts";
import { askGateway, bearerOf, fetchFromGateway } from "./ask-gateway.ts";
import type { PrintLine } from "./command.ts";
import type { usageSettings } from "./command-settings.ts";
import { gatewayFor } from "./local-addresses.ts";

const COLUMNS = {
  day: "day",
  tenant: "tenant",
  connections: "connections",
  connectionSeconds: "connection s",
  edits: "edits",
  editBytes: "edit bytes",
  presenceMessages: "presence",
  receivedBytes: "received bytes",
  deliveredBytes: "delivered bytes",
  refusals: "refusals",
} as const;

const Usage = z.object({
  from: z.string(),
  to: z.string(),
  usage: z.array(z.record(z.enum(Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]), z.union([z.string(), z.number()]))),
});

export async function printUsage(config: Values<typeof usageSettings>, print: PrintLine): Promise<void> {
  const { tenant, from, to, csv } = config;
  const query = new URLSearchParams(Object.entries({ tenant, from, to }).filter(([, value]) => value !== ""));
  const url = new URL(`/v1/usage?${query}`, gatewayFor(config));
  const bearer = bearerOf(config);
  const answer = await askGateway(url, bearer, {}); // Reports refusals with their remedy.
  if (csv) return print(await csvFrom(url, bearer.text));
  const { usage, ...days } = Usage.parse(answer);
  for (const line of tableOf(usage)) print(line);
  print(`usage from ${days.from} to ${days.to} (UTC). The last ten seconds may be missing`);
}

async function csvFrom(url: URL, bearer: string): Promise<string> {
  url.searchParams.set("format", "csv");
  const { ok, text } = await fetchFromGateway(url, bearer, {}, async (response) => ({ ok: response.ok, text: await response.text() }));
  if (!ok) throw new SettingError(`the gateway at ${url.origin} did not answer as CSV: run the command again`);
  return text.trimEnd();
}

/** Columns are as wide as their longest value. Numbers are aligned to the right. */
function tableOf(rows: z.infer<typeof Usage>["usage"]): string[] {
  const names = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
  const cells = [Object.values(COLUMNS), ...rows.map((row) => names.map((name) => String(row[name])))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const padded = (cell: string, column: number): string => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!));
  return cells.map((row) => row.map(padded).join("  ").trimEnd());
}
