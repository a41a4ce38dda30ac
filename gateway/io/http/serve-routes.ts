/**
 * Serves HTTP routes on uWebSockets.js, beside the WebSockets. A route is a plain function from request to answer. An
 * exception fails only its request; a failed assertion ends the process. No answer is sent in the turn of the event loop
 * in which its request arrived: uWebSockets.js closes a connection that sends a request before the answer to the one
 * before. Otherwise one read of a connection could hold thousands of requests, which would all be answered in this turn.
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js-glibc-2.36";

import { endOfTurn, untilTurnEnds } from "../../../shared/io/event-loop.ts";
import type { Log } from "../../../shared/process/log.ts";
import { corsHeaders } from "../../../shared/settings/origins.ts";
import { rethrowMistake } from "../../../shared/time/pause.ts";
import { type HttpAnswer, isWithoutBody, statusLine } from "../../http/answers.ts";
import type { RouteRequest } from "../../http/requests.ts";
import {
  BODY_BYTES_MAX,
  bodyRefusal,
  type HttpRoute,
  methodNotAllowed,
  methodsByPath,
  NOT_FOUND,
  parameterCount,
  REQUEST_FAILED,
} from "../../http/route-table.ts";
import { addressOf } from "../sockets/address-of.ts";
import { HeldBodies, type HeldBodiesOptions } from "./held-bodies.ts";
import { type SendOptions, sendParts, sendUnsized, sendWhole } from "./send-body.ts";

const NO_BODY = new Uint8Array(0);

type HttpServeOptions = SendOptions &
  HeldBodiesOptions & {
    readonly allowedOrigins: readonly string[];
    readonly clientAddressHeader: string;
    readonly log: Log;
  };

/**
 * `headOnly`: HEAD is answered like GET, without the body (RFC 9110, 9.3.2). `isLast`: the connection is closed after the
 * answer.
 */
type RespondOptions = HttpServeOptions & {
  readonly turnEnded: () => Promise<void>;
  readonly headOnly?: boolean;
  readonly isLast?: boolean;
};

export function serveRoutes(app: TemplatedApp, routes: readonly HttpRoute[], serveOptions: HttpServeOptions): void {
  const options = { ...serveOptions, turnEnded: untilTurnEnds(endOfTurn()) };
  const { allowedOrigins, clientAddressHeader } = options;
  const bodies = new HeldBodies(options);
  for (const { method, path, answer, bodyBytesMax = BODY_BYTES_MAX } of routes) {
    if (method === "get") {
      app.head(path, (res, req) => {
        const request = readRequest(res, req, path, clientAddressHeader);
        void respond(res, request, answer, corsHeaders(request.header("origin"), allowedOrigins), { ...options, headOnly: true });
      });
    }
    app[method](path, (res, req) => {
      const request = readRequest(res, req, path, clientAddressHeader);
      const cors = corsHeaders(request.header("origin"), allowedOrigins);
      if (method === "get" || method === "del") return void respond(res, request, answer, cors, options);
      bodies.read(res, bodyBytesMax, request.signal, (read) => {
        if (read.kind === "read") return respond(res, { ...request, body: read.body }, answer, cors, options);
        // A refused body of a known length comes in large pieces, and its client reads the answer after sending it.
        const isLast = request.header("transfer-encoding") !== "";
        return respond(res, request, () => bodyRefusal(read.kind, bodyBytesMax), cors, { ...options, isLast });
      });
    });
  }
  const refuse = (methods: readonly ("any" | "get" | "head" | "options")[], path: string, answer: HttpAnswer): void => {
    for (const method of methods) {
      app[method](path, (res, req) => {
        const headOnly = req.getMethod() === "head"; // A client would read a body as the start of the next answer.
        const request = readRequest(res, req, path, clientAddressHeader);
        void respond(res, request, () => answer, corsHeaders(request.header("origin"), allowedOrigins), { ...options, headOnly });
      });
    }
  };
  for (const [path, allow] of methodsByPath(routes)) {
    // uWebSockets.js tries a route of the method before `any`. A GET of a write-only path would reach the static files at `/*`.
    const isReadable = routes.some((route) => route.path === path && route.method === "get");
    refuse(isReadable ? ["any"] : ["any", "get", "head"], path, methodNotAllowed(allow));
  }
  refuse(["any"], "/*", NOT_FOUND);
  refuse(["options"], "/*", { status: 204 });
}

async function respond(
  res: HttpResponse,
  request: RouteRequest,
  answer: HttpRoute["answer"],
  cors: Record<string, string>,
  options: RespondOptions,
): Promise<void> {
  const given = await answered(request, answer, options.log);
  await options.turnEnded();
  try {
    await send(res, given, request.signal, cors, options);
  } catch (cause) {
    rethrowMistake(cause);
    if (request.signal.aborted) return; // The client has disconnected, which also ends the reads for it.
    options.log.error({ path: request.path, cause }, "an HTTP answer broke off");
    res.close(); // The head may have been sent. The closed connection shows the client that the rest is missing.
  } finally {
    given.onEnded?.();
  }
}

/**
 * Answers 500 when a route fails, for example because NATS or a service is unavailable. This is possible only before a
 * part of the answer is sent.
 */
async function answered(request: RouteRequest, answer: HttpRoute["answer"], log: Log): Promise<HttpAnswer> {
  try {
    return await answer(request);
  } catch (cause) {
    rethrowMistake(cause);
    if (!request.signal.aborted) log.error({ path: request.path, cause }, "an HTTP request failed");
    return REQUEST_FAILED;
  }
}

async function send(
  res: HttpResponse,
  { status, headers = {}, body = "", bodyBytes }: HttpAnswer,
  signal: AbortSignal,
  cors: Record<string, string>,
  options: RespondOptions,
): Promise<void> {
  if (signal.aborted) return discardBody(body);
  if (isWithoutBody(status)) {
    res.cork(() => writeHead(res, status, { ...headers, ...cors }).endWithoutBody());
    return discardBody(body);
  }
  if (options.headOnly === true) {
    const length = typeof body === "string" || body instanceof Uint8Array ? Buffer.byteLength(body) : bodyBytes;
    const sized = length === undefined ? {} : { "content-length": String(length) }; // With a length, uWebSockets.js would wait for the body.
    res.cork(() => writeHead(res, status, { ...headers, ...cors, ...sized }).endWithoutBody());
    return discardBody(body);
  }
  if (typeof body === "string")
    return void res.cork(() => writeHead(res, status, { ...headers, ...cors }).end(body, options.isLast === true));
  if (body instanceof Uint8Array && body.byteLength === 0)
    return void res.cork(() => writeHead(res, status, { ...headers, ...cors }).end());
  if (body instanceof Uint8Array)
    return void (await sendWhole(res, body, () => writeHead(res, status, { ...headers, ...cors }), signal, options));
  res.cork(() => writeHead(res, status, { ...headers, ...cors }));
  if (bodyBytes === undefined) return sendUnsized(res, body, signal);
  return sendParts(res, body, bodyBytes, signal, options);
}

/** Discards an unread body: a body in parts holds a connection until it is read or ended. */
export async function discardBody(body: HttpAnswer["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return;
  for await (const part of body) return void part; // An iterator that has not started cannot release anything.
}

/** uWebSockets.js keeps the request only during this call, so all values are copied out of it. */
function readRequest(res: HttpResponse, req: HttpRequest, path: string, clientAddressHeader: string): RouteRequest {
  const gone = new AbortController();
  res.onAborted(() => gone.abort());
  const headers = new Map<string, string>();
  req.forEach((name, value) => headers.set(name, value));
  const parameters = Array.from({ length: parameterCount(path) }, (_, index) => req.getParameter(index) ?? "");
  return {
    path: req.getUrl(),
    parameters,
    query: new URLSearchParams(req.getQuery()),
    header: (name) => headers.get(name) ?? "",
    address: addressOf(res, req, clientAddressHeader),
    body: NO_BODY,
    signal: gone.signal,
  };
}

/**
 * For every answer. Most answers depend on the token, which is no part of a proxy's key, so only routes that allow it are
 * stored. Without `nosniff` a browser would run a document's text as a script.
 */
const HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

function writeHead(res: HttpResponse, status: number, headers: Readonly<Record<string, string>>): HttpResponse {
  res.writeStatus(statusLine(status));
  for (const [name, value] of Object.entries({ ...HEADERS, ...headers })) res.writeHeader(name, value);
  return res;
}
