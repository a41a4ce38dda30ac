/**
 * HTTP between tiers: the gateway checks its client's token and sends the shared secret and the tenant. A request
 * without the secret is refused, and its connection is closed. A tier provides one function from request to response. It
 * answers 503 for failures of other systems. Any other exception fails only its request; a failed assertion ends the
 * process.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

import type { Registry } from "prom-client";

import type { Log } from "../process/log.ts";
import { rethrowMistake } from "../time/pause.ts";
import { StartError } from "../process/lifecycle.ts";
import type { InternalTls } from "./internal-tls.ts";
import { answerLast, lastRequestServer } from "./last-request.ts";

export type InternalRequest = {
  readonly method: string;
  /** The path after `/v1`, decoded. Empty for any other path, and for an invalid escape. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  /** Not checked; empty if the request has none. */
  readonly tenant: string;
  /** Empty: the request has none. */
  readonly header: (lowerCaseName: string) => string;
  /**
   * Undefined: longer than the limit. Throws when the client disconnects before the body is complete. The caller need
   * not catch it, because no client waits for an answer then.
   */
  readonly body: () => Promise<Uint8Array | undefined>;
  /** Aborted when the client no longer waits for the answer. */
  readonly signal: AbortSignal;
};

/** `name`: the label of the request in metrics. */
export type InternalResponse = {
  readonly status: number;
  readonly name: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Uint8Array | string;
};

export type InternalHttpOptions = {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
  /** The secret of Prometheus. Empty: this server does not serve /metrics. */
  readonly metricsSecret: string;
  /** Undefined: plain HTTP. */
  readonly tls?: InternalTls | undefined;
  /** Maximum bytes of a request's body. */
  readonly bodyBytesMax: number;
  /** Used in the error for a port in use: the role that listens, and the setting to change. */
  readonly tier: string;
  readonly portSetting: string;
  /** Metrics that /metrics shows. */
  readonly registry: Registry;
  readonly log: Log;
};

const DRAIN_MS_MAX = 2_000;
/** A gateway forwards a URL and headers of up to 20 KiB, and adds its own. The default of Node is 16 KiB. */
const HEADER_BYTES_MAX = 32 * 1024;
/** Sent with every 503, because a later request may succeed. */
const RETRY_AFTER_SECONDS = 1;
const NOT_PROMETHEUS = refusal(
  401,
  "unauthorized",
  "metrics are for Prometheus: send COROOM_METRICS_SECRET as Authorization: Bearer, or read them on the health port",
);
/** Not 503, because the gateway would repeat the request at the next service. */
const FAILED = refusal(500, "failed", "this request failed, and would fail again: see the service's log for the cause");
const UNAUTHORIZED = refusal(401, "unauthorized", "only gateways ask here: send x-coroom-internal");

export function jsonResponse(status: number, name: string, body: object): InternalResponse {
  return { status, name, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** `error` is for programs, and `message` explains to people what to do. */
export function refusal(status: number, error: string, message: string): InternalResponse {
  return jsonResponse(status, error, { error, message });
}

export async function serveInternal(
  options: InternalHttpOptions,
  answer: (question: InternalRequest) => InternalResponse | Promise<InternalResponse>,
  count: (answer: string) => void,
): Promise<{ port: number; stop(): Promise<void> }> {
  const mayAsk = secretCheck(options.secret);
  const mayScrape = secretCheck(options.metricsSecret);
  const isRefused = (request: IncomingMessage): boolean =>
    isForMetrics(request) ? !mayScrape(bearerOf(request)) : !mayAsk(request.headers["x-coroom-internal"]);
  const refuse = (request: IncomingMessage, connection: Duplex): void => {
    const refused = isForMetrics(request) ? NOT_PROMETHEUS : UNAUTHORIZED;
    count(refused.name);
    answerLast(request, connection, refused);
  };
  const answerTo = async (request: IncomingMessage, response: ServerResponse): Promise<InternalResponse> =>
    isForMetrics(request) ? metricsAnswer(options.registry) : answer(readQuestion(request, signalOf(response), options));
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const given = await answerTo(request, response);
    count(given.name);
    send(response, given);
  };
  const receive = (request: IncomingMessage, response: ServerResponse): void => {
    respond(request, response).catch((cause: unknown) => {
      if (cause instanceof AskerGone) return void response.destroy(); // The client asks again.
      rethrowMistake(cause);
      options.log.error(
        { method: request.method, url: request.url, cause },
        "a request failed with an unexpected error: report it with this entry",
      );
      count(FAILED.name);
      if (response.headersSent) response.destroy();
      else send(response, FAILED);
    });
  };
  const http = { ...lastRequestServer(isRefused), maxHeaderSize: HEADER_BYTES_MAX };
  const server = options.tls === undefined ? createServer(http, receive) : createTlsServer({ ...options.tls, ...http }, receive);
  server.on("upgrade", refuse);
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS_MAX);
        server.close(() => {
          clearTimeout(force);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function isForMetrics({ url }: IncomingMessage): boolean {
  return url === "/metrics";
}

/** For Prometheus, which sends the secret as a bearer token. */
async function metricsAnswer(registry: Registry): Promise<InternalResponse> {
  return { status: 200, name: "metrics", headers: { "content-type": registry.contentType }, body: await registry.metrics() };
}

function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1];
}

function readQuestion(request: IncomingMessage, signal: AbortSignal, { bodyBytesMax }: InternalHttpOptions): InternalRequest {
  const url = new URL(`http://internal${request.url ?? ""}`); // Not with a base: that would read the path `//` as a host.
  const header = (name: string): string => String(request.headers[name] ?? "");
  return {
    method: request.method ?? "",
    segments: segmentsOf(url.pathname),
    query: url.searchParams,
    tenant: header("x-coroom-tenant"),
    header,
    body: () => readBody(request, bodyBytesMax),
    signal,
  };
}

function signalOf(response: ServerResponse): AbortSignal {
  const over = new AbortController();
  response.on("close", () => over.abort());
  return over.signal;
}

class AskerGone extends Error {
  override readonly name = "AskerGone";
}

async function readBody(request: IncomingMessage, bytesMax: number): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) return undefined;
      chunks.push(chunk);
    }
  } catch (cause) {
    // A request's stream fails only when its connection fails.
    throw new AskerGone("the asker went before its request was whole", { cause });
  }
  return Buffer.concat(chunks);
}

function send(response: ServerResponse, { status, headers = {}, body }: InternalResponse): void {
  response.setHeader("cache-control", "no-cache");
  if (status === 503) response.setHeader("retry-after", RETRY_AFTER_SECONDS);
  if (body !== undefined) response.setHeader("content-length", Buffer.byteLength(body));
  response.writeHead(status, headers);
  response.end(body);
}

function segmentsOf(pathname: string): string[] {
  const [empty, version, ...segments] = pathname.split("/");
  if (empty !== "" || version !== "v1") return [];
  try {
    return segments.map(decodeURIComponent);
  } catch (error) {
    if (error instanceof URIError) return [];
    throw error;
  }
}

/** Compares digests, so that the duration reveals nothing about the secret. */
function secretCheck(secret: string): (given: string | string[] | undefined) => boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const expected = digest(secret);
  return (given) => secret !== "" && typeof given === "string" && timingSafeEqual(digest(given), expected);
}

function listen(server: Server, { host, port, tier, portSetting }: InternalHttpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new StartError(
          `the ${tier} cannot listen on ${host}:${port}: another process uses the port, or the address does not belong to this machine. Set ${portSetting} to a free port, or to 0`,
          { cause },
        ),
      ),
    );
    server.listen(port, host, resolve);
  });
}
