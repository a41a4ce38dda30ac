/** The table of HTTP routes, and the answers to requests that no route handles. */

import { errorAnswer, type HttpAnswer, retryAfter } from "./answers.ts";
import type { RouteRequest } from "./requests.ts";

/** `bodyBytesMax` limits a POST or PUT body; BODY_BYTES_MAX is the default. */
export type HttpRoute = {
  readonly method: "get" | "post" | "put" | "del";
  readonly path: string;
  readonly answer: (request: RouteRequest) => HttpAnswer | Promise<HttpAnswer>;
  readonly bodyBytesMax?: number;
};

export const SOCKET_PATH = "/v1/connect";
export const BODY_BYTES_MAX = 65_536;

export const NOT_FOUND = errorAnswer(404, "not-found", "nothing exists at this path");
export const REQUEST_FAILED = errorAnswer(
  500,
  "failed",
  "the gateway could not answer this request: try again. If it keeps failing, see /readyz and the gateway's log.",
);
export const UPGRADE_REQUIRED = errorAnswer(
  426,
  "upgrade-required",
  "this path accepts WebSocket connections only: a proxy in between must forward the headers Upgrade and Connection",
  { upgrade: "websocket" },
);

export function methodNotAllowed(allow: string): HttpAnswer {
  return errorAnswer(405, "method-not-allowed", `this path accepts ${allow}`, { allow });
}

export function bodyRefusal(kind: "too-large" | "full", bytesMax: number): HttpAnswer {
  return kind === "too-large"
    ? errorAnswer(413, "too-large", `a body may have at most ${bytesMax} bytes`)
    : errorAnswer(503, "busy", "the gateway is reading too many bodies: send the request again", retryAfter(1));
}

/** Number of `:name`s in a path. */
export function parameterCount(path: string): number {
  return path.split("/").filter((part) => part.startsWith(":")).length;
}

const METHODS: Readonly<Record<HttpRoute["method"], string>> = { get: "GET, HEAD", post: "POST", put: "PUT", del: "DELETE" };

/**
 * The methods of each path, for the Allow header. A path with `*` is left out, because it matches the paths that no
 * other route matches.
 */
export function methodsByPath(routes: readonly Pick<HttpRoute, "method" | "path">[]): ReadonlyMap<string, string> {
  const methods = new Map<string, string>();
  for (const { method, path } of routes) {
    if (path.includes("*")) continue;
    const before = methods.get(path);
    methods.set(path, before === undefined ? METHODS[method] : `${before}, ${METHODS[method]}`);
  }
  return methods;
}
