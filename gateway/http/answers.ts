/** HTTP answers as plain values. Routes return them; `io/http/serve-routes.ts` writes them to the socket. */

import { matchesEtag } from "../../shared/if-none-match.ts";
import { parseJson } from "../../shared/parse-json.ts";

/** A body of unknown length has no `bodyBytes`. `onEnded` is called when the client has the whole answer, or has disconnected. */
export type HttpAnswer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly bodyBytes?: number;
  readonly onEnded?: () => void;
};

export function jsonAnswer(status: number, body: object, headers: Record<string, string> = {}): HttpAnswer {
  return { status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}

/** `error` is a stable code for programs. `message` explains to people what to do. */
export function errorAnswer(status: number, error: string, message: string, headers: Record<string, string> = {}): HttpAnswer {
  return jsonAnswer(status, { error, message }, headers);
}

/** The code of an `errorAnswer`. Undefined: the body is another one. */
export function errorOf(body: Uint8Array): string | undefined {
  const parsed = parseJson(new TextDecoder().decode(body));
  return typeof parsed === "object" && parsed !== null && "error" in parsed && typeof parsed.error === "string" ? parsed.error : undefined;
}

/** The headers of an answer to a request that may be repeated after a delay. */
export function retryAfter(seconds: number): Record<string, string> {
  return { "retry-after": String(seconds) };
}

/** 304 if the client has this answer already (RFC 9110, 13.1.2). The body is kept for its release. */
export function conditional(answer: HttpAnswer, ifNoneMatch: string): HttpAnswer {
  const etag = answer.headers?.["etag"];
  if (answer.status !== 200 || etag === undefined) return answer;
  return matchesEtag(ifNoneMatch, etag) ? { ...answer, status: 304 } : answer;
}

/** A date as ISO 8601, as in every answer. */
export function isoDate(at: number): string {
  // oxlint-disable-next-line no-restricted-globals -- formats a given time and reads no clock
  return new Date(at).toISOString();
}

/** An answer with such a status has no body and no content-length (RFC 9110, 8.6). */
export function isWithoutBody(status: number): boolean {
  return status === 204 || status === 304;
}

export function statusLine(status: number): string {
  return `${status} ${STATUS_TEXTS[status] ?? "Status"}`;
}

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  304: "Not Modified",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  426: "Upgrade Required",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  507: "Insufficient Storage",
};
