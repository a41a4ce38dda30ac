/**
 * A room's past for clients and backends: its versions, its state at a seq or a time, who wrote when. Passed on to the
 * document service once the token is checked; bringing an old state back is a write (document-write-routes.ts).
 * Described in `document-service/history-openapi.json`.
 */

import type { Clock } from "../../shared/clock.ts";
import { roomKey } from "../../shared/ids.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import { type Asked, askServices, decodeParameter, identify } from "./ask-services.ts";
import { NO_DOCUMENT_SERVICE } from "./document-read-routes.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";
import { admittedRoom } from "./rooms-asked.ts";
import type { StreamedAnswers } from "./streamed-answers.ts";

export type DocumentHistoryPorts = { readonly tokens: HttpTokens; readonly documents: Services; readonly streamed: StreamedAnswers };
export type DocumentHistoryOptions = { readonly internalSecret: string; readonly eachUser: Rate; readonly readersMax: number };

type Needs = "read" | "write";

const TOO_FAST = jsonAnswer(
  429,
  { error: "rate-limited", message: "too many questions about the past at once: ask again later" },
  { "retry-after": "2" },
);
/** What of the query is passed on. */
const PARAMETERS = ["seq", "time", "from"];
const NAME_BYTES_MAX = 1_024;

export function documentHistoryRoutes(
  { tokens, documents, streamed }: DocumentHistoryPorts,
  options: DocumentHistoryOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(options.eachUser, options.readersMax);

  const ask =
    (place: (question: HttpQuestion) => string, needs: Needs, asked: Pick<Asked, "method"> = {}) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      const identity = await identify(question, tokens);
      if ("status" in identity) return identity;
      const room = admittedRoom(question, identity);
      if (typeof room !== "string") return room;
      const { tenant, user } = identity;
      if (needs === "write" && (!identity.rights.write || identity.restrictionIn?.(roomKey(tenant, room)) !== undefined))
        return errorAnswer(403, "not-allowed", "versions are kept and removed by who may write in the room");
      if (!rates.take(`${tenant} ${user}`, clock.now())) {
        metrics.limitsReached.inc({ limit: "snapshots" });
        return TOO_FAST;
      }
      const query = new URLSearchParams([...question.query].filter(([name]) => PARAMETERS.includes(name))).toString();
      const path = `/v1/rooms/${encodeURIComponent(room)}/${place(question)}${query === "" ? "" : `?${query}`}`;
      const body = asked.method === "POST" ? { body: question.body } : {};
      return streamed.pass(
        `${tenant} ${user}`,
        (await askServices(documents, { path, tenant, ...asked, ...body }, question, options)) ?? NO_DOCUMENT_SERVICE,
      );
    };

  return [
    { method: "get", path: "/v1/rooms/:room/versions", answer: ask(() => "versions", "read") },
    { method: "get", path: "/v1/rooms/:room/past", answer: ask(() => "past", "read") },
    { method: "get", path: "/v1/rooms/:room/sessions", answer: ask(() => "sessions", "read") },
    {
      method: "post",
      path: "/v1/rooms/:room/versions",
      answer: ask(() => "versions", "write", { method: "POST" }),
      bodyBytesMax: NAME_BYTES_MAX,
    },
    {
      method: "del",
      path: "/v1/rooms/:room/versions/:version",
      answer: ask(({ parameters: [, version = ""] }) => `versions/${encodeURIComponent(decodeParameter(version))}`, "write", {
        method: "DELETE",
      }),
    },
  ];
}
