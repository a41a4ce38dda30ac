/**
 * What a service behind the gateway answers, passed on to a client: who asks is settled from the token, as a
 * join would; the service is shown the secret that the tiers share, and the tenant.
 */

import type { TenantId } from "../../shared/ids.ts";
import type { Identity } from "../identity.ts";
import type { Tokens } from "../ports.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion } from "./http-routes.ts";
import type { Services } from "./nats-services.ts";

const PASSED_ON = ["content-type", "etag", "x-coroom-seq", "x-coroom-epoch", "cache-control", "retry-after", "vary"];
const ANSWER_MS_MAX = 15_000;
const UNCHECKED = errorAnswer(503, "unavailable", "tokens cannot be checked right now: try again in a moment");

export async function identify({ header, query }: HttpQuestion, tokens: Tokens): Promise<Identity | HttpAnswer> {
  const bearer = /^Bearer (.+)$/i.exec(header("authorization"))?.[1];
  const token = bearer ?? query.get("token");
  if (token === null || token === "") return errorAnswer(401, "no-token", "give the token as Authorization: Bearer, or as ?token=");
  const verdict = await tokens.verify(token);
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

export type Asked = { readonly path: string; readonly tenant: TenantId; readonly headers?: Readonly<Record<string, string>>; readonly method?: "POST" | "PUT" | "DELETE"; readonly body?: Uint8Array };

/** Of several services the first that can answer; one that died a moment ago is still among them. Undefined: none can. */
export async function askServices(services: Services, { path, tenant, headers = {}, method, body }: Asked, { signal }: Pick<HttpQuestion, "signal">, { internalSecret }: { internalSecret: string }): Promise<HttpAnswer | undefined> {
  const shown = { ...headers, "x-coroom-internal": internalSecret, "x-coroom-tenant": tenant };
  let unready: HttpAnswer | undefined;
  await services.heard;
  for (const url of services.urls()) {
    try {
      const response = await fetch(new URL(path, url), { method: method ?? "GET", headers: shown, ...(body === undefined ? {} : { body: Buffer.from(body) }), signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]) });
      if (response.status !== 503) return passOn(response);
      unready = { ...passOn(response), body: await response.text() }; // Another may be the one that can.
    } catch (error) {
      if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error; // What fetch throws when nobody answers, or not in time.
    }
  }
  return unready;
}

function passOn(response: Response): HttpAnswer {
  const headers: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = response.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const encoding = response.headers.get("x-coroom-encoding"); // Under that name `fetch` leaves the bytes as they are.
  if (encoding !== null) headers["content-encoding"] = encoding;
  if (response.body === null) return { status: response.status, headers };
  const bytes = response.headers.get("content-length");
  return { status: response.status, headers, body: response.body, ...(bytes === null ? {} : { bodyBytes: Number(bytes) }) };
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
