/** Prints usage by tenant and day from a gateway (`gateway/usage-openapi.json`), as a table or as CSV. */

import { z } from "zod";

import type { Values } from "../shared/settings/settings.ts";
import { answerAs, askGateway, bearerOf } from "./ask-gateway.ts";
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
  storedBytes: "stored bytes",
  peakConnections: "peak connections",
} as const;

const NAMES = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];

const Usage = z.object({
  from: z.string(),
  to: z.string(),
  /** A gateway of another version may have more columns, or fewer. */
  usage: z.array(z.record(z.string(), z.union([z.string(), z.number()]))),
});
type UsageRows = z.infer<typeof Usage>["usage"];

export async function printUsage(config: Values<typeof usageSettings>, print: PrintLine): Promise<void> {
  const { tenant, from, to, csv } = config;
  const query = new URLSearchParams(Object.entries({ tenant, from, to }).filter(([, value]) => value !== ""));
  const url = new URL(`/v1/usage?${query}`, gatewayFor(config));
  const { usage, ...days } = answerAs(Usage, await askGateway(url, bearerOf(config), {}));
  if (csv) return print(csvOf(usage));
  for (const line of tableOf(usage)) print(line);
  print(
    `usage from ${days.from} to ${days.to} (UTC). The last ten seconds may be missing, and the last minute of stored bytes and of the peak`,
  );
}

/** The same as the gateway's answer as CSV. */
function csvOf(rows: UsageRows): string {
  return [NAMES.join(","), ...rows.map((row) => NAMES.map((name) => row[name] ?? "").join(","))].join("\r\n");
}

/** Columns are as wide as their longest value. Numbers are aligned to the right. */
function tableOf(rows: UsageRows): string[] {
  const cells = [Object.values(COLUMNS), ...rows.map((row) => NAMES.map((name) => String(row[name] ?? "")))];
  const widths = NAMES.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const padded = (cell: string, column: number): string => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!));
  return cells.map((row) => row.map(padded).join("  ").trimEnd());
}
