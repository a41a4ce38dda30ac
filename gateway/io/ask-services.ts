/**
 * What a service behind the gateway answers, passed on to a client: who asks is settled from the token, as a
 * join would; the service is shown the secret that the tiers share, and the tenant.
 */

import type { IncomingMessage } from "node:http";

import type { TenantId } from "../../shared/ids.ts";
import type { Identity } from "../sessions/identity.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";

const PASSED_ON = ["content-type", "etag", "x-coroom-seq", "x-coroom-epoch", "x-coroom-last-edit", "cache-control", "retry-after", "vary"];
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 304]);
/** node:http types a status as one that may be missing; of an answer it never is. */
const BROKEN_GATEWAY = 502;
/** Of these two names an address makes steps, encoded or not. */
const NO_SUCH_PATH = errorAnswer(404, "not-found", "`.` and `..` cannot be asked for over HTTP");
const UNCHECKED = errorAnswer(503, "unavailable", "tokens cannot be checked right now: try again in a moment");

export async function identify({ header, query, address }: HttpQuestion, tokens: HttpTokens): Promise<Identity | HttpAnswer> {
  const bearer = /^Bearer (.+)$/i.exec(header("authorization"))?.[1];
  const token = bearer ?? query.get("token");
  if (token === null || token === "") return errorAnswer(401, "no-token", "give the token as Authorization: Bearer, or as ?token=");
  const verdict = await tokens.verify(token, address);
  switch (verdict.kind) {
    case "valid":
      return verdict.identity;
    case "expired":
      return errorAnswer(401, "token-expired", "the token has expired: ask for a new one");
    case "refused":
      return errorAnswer(401, "token-refused", `the token was refused: ${verdict.why}`);
    case "unchecked":
      return UNCHECKED;
  }
}

export type Asked = {
  readonly path: string;
  readonly tenant: TenantId;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "POST" | "PUT" | "DELETE";
  readonly body?: Uint8Array;
};

/**
 * Of several services the first that can answer; one that died a moment ago is still among them. Undefined: none can.
 * Whether the asker may was settled for `path`, its names encoded: where an address would read another path, nobody is asked.
 */
export async function askServices(
  services: Services,
  { path, tenant, headers = {}, method, body }: Asked,
  { signal }: Partial<Pick<HttpQuestion, "signal">>,
  { internalSecret }: { internalSecret: string },
): Promise<HttpAnswer | undefined> {
  const shown = { ...headers, "x-coroom-internal": internalSecret, "x-coroom-tenant": tenant };
  let unready: HttpAnswer | undefined;
  await services.heard;
  for (const service of services.urls()) {
    const url = new URL(path, service);
    if (url.pathname !== path.split("?")[0]) return NO_SUCH_PATH;
    const answer = await services.ask(url, { method: method ?? "GET", headers: shown, ...(body === undefined ? {} : { body }) }, signal);
    if (answer === undefined) continue;
    if (answer.statusCode !== 503) return passOn(answer);
    unready = { ...passOn(answer), body: await textOf(answer) }; // Another may be the one that can.
  }
  return unready;
}

function passOn(answer: IncomingMessage): HttpAnswer {
  const { statusCode: status = BROKEN_GATEWAY, headers: given } = answer;
  const headers: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = given[name];
    if (typeof value === "string") headers[name] = value;
  }
  const encoding = given["x-coroom-encoding"];
  if (typeof encoding === "string") headers["content-encoding"] = encoding;
  const bytes = given["content-length"];
  if (WITHOUT_BODY.has(status) || bytes === "0") {
    answer.resume(); // The connection is free again only once it is read to its end.
    return { status, headers };
  }
  return { status, headers, body: answer, ...(bytes === undefined ? {} : { bodyBytes: Number(bytes) }) };
}

/** Empty where it breaks off: the status says enough. */
function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  answer.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  answer.on("error", () => {}); // It broke off.
  return new Promise((resolve) => answer.on("close", () => resolve(answer.complete ? Buffer.concat(chunks).toString() : "")));
}

/** Empty, which is no room's name and nobody's, for a broken escape. */
export function decodeParameter(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch (error) {
    if (error instanceof URIError) return "";
    throw error;
  }
}
