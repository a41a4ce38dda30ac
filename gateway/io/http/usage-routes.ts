/**
 * Usage by tenant and day: an operator sees one tenant or all, an administrator of a tenant sees that tenant.
 * `gateway/usage-openapi.json` describes the route.
 */

import type { Log } from "../../../shared/process/log.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import { rethrowMistake } from "../../../shared/time/pause.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { rateKey, TOO_MANY_QUERIES } from "../../http/operations-requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import {
  rowsOf,
  tooManyRows,
  USAGE_NOT_STORED,
  USAGE_UNREACHABLE,
  usageAnswer,
  usageQuestion,
  type UsageQuestion,
  type UsageRow,
} from "../../http/usage-requests.ts";
import { type Rate, UserRates } from "../../limits/reader-rates.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { UsageStore } from "../../ports.ts";
import { authorityOf, type HttpTokens } from "./authenticate.ts";

export type UsagePorts = { readonly tokens: HttpTokens; readonly usageStore: UsageStore | undefined };
type UsageRouteOptions = {
  readonly operatorSecret: string;
  readonly daysMax: number;
  readonly rowsMax: number;
  readonly reads: Rate;
  readonly readersMax: number;
};

export function usageRoutes(
  { tokens, usageStore }: UsagePorts,
  options: UsageRouteOptions,
  { clock, metrics, log }: { clock: Clock; metrics: GatewayMetrics; log: Log },
): HttpRoute[] {
  const rates = new UserRates(options.reads, options.readersMax);
  const answer: HttpRoute["answer"] = async (request) => {
    const authority = await authorityOf(request, tokens, options);
    if ("status" in authority) return authority;
    if (!rates.take(rateKey(authority.of), clock.now())) {
      metrics.limitsReached.inc({ limit: "admin-reads" });
      return TOO_MANY_QUERIES;
    }
    const question = usageQuestion(request, authority.of, clock.wallNow(), options);
    if ("status" in question) return question;
    return usageStore === undefined ? USAGE_NOT_STORED : readUsage(usageStore, question, options, log);
  };
  return [{ method: "get", path: "/v1/usage", answer }];
}

async function readUsage(
  store: UsageStore,
  question: UsageQuestion,
  { rowsMax }: Pick<UsageRouteOptions, "rowsMax">,
  log: Log,
): Promise<HttpAnswer> {
  const rows: UsageRow[] = [];
  try {
    for (const day of question.days) {
      for (const row of rowsOf(day, await store.read(day, question.tenant))) rows.push(row);
      if (rows.length > rowsMax) return tooManyRows(rowsMax);
    }
  } catch (cause) {
    rethrowMistake(cause);
    log.warn({ cause }, "usage cannot be read from Redis");
    return USAGE_UNREACHABLE;
  }
  return usageAnswer(question, rows);
}
