/** HTTP beside the WebSockets: routes as plain functions from request to answer, put on uWebSockets.js here. */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uws-node20";

import type { Log } from "../../shared/log.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import { addressOf } from "./address-of.ts";
import { corsHeaders } from "../../shared/origins.ts";
import { HeldBodies, type HeldBodiesOptions, type ReadBody } from "./held-bodies.ts";
import { type SendOptions, sendParts, sendUnsized, sendWhole } from "./send-body.ts";

/** `bodyBytesMax`: of what is posted or put; BODY_BYTES_MAX where it does not say. */
export type HttpRoute = {
  readonly method: "get" | "post" | "put" | "del";
  readonly path: string;
  readonly answer: (question: HttpQuestion) => HttpAnswer | Promise<HttpAnswer>;
  readonly bodyBytesMax?: number;
};

export type HttpQuestion = {
  readonly path: string;
  /** What stands for the `:name`s and `*` of the route's path, in their order, as in the URL. */
  readonly parameters: readonly string[];
  readonly query: URLSearchParams;
  readonly header: (lowerCaseName: string) => string;
  /** Undefined: this machine. */
  readonly address: ClientAddress | undefined;
  /** Empty, but of a POST or PUT. */
  readonly body: Uint8Array;
  /** Fires when the asker goes away. */
  readonly signal: AbortSignal;
};

/** `bodyBytes`: of a body that comes in parts, where it is known. `onEnded`: to be called when whoever asked has all of it, or has gone. */
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

/** `error` is for programs, `message` tells people what to do. */
export function errorAnswer(status: number, error: string, message: string, headers: Record<string, string> = {}): HttpAnswer {
  return jsonAnswer(status, { error, message }, headers);
}

const BODY_BYTES_MAX = 65_536;
const NO_BODY = new Uint8Array(0);

export type ServeOptions = SendOptions &
  HeldBodiesOptions & {
    readonly allowedOrigins: readonly string[];
    readonly clientAddressHeader: string;
    readonly log: Log;
  };

const FAILED = errorAnswer(
  500,
  "failed",
  "this could not be answered just now: ask again, and see /readyz and the gateway's log if it stays so",
);

/** `headOnly`: for HEAD, which is answered as GET is but for the body (RFC 9110, 9.3.2). */
type RespondOptions = ServeOptions & { readonly headOnly?: boolean };

export function serveRoutes(app: TemplatedApp, routes: readonly HttpRoute[], options: ServeOptions): void {
  const { allowedOrigins, clientAddressHeader } = options;
  const bodies = new HeldBodies(options);
  for (const { method, path, answer, bodyBytesMax = BODY_BYTES_MAX } of routes) {
    if (method === "get") {
      app.head(path, (res, req) => {
        const question = readQuestion(res, req, path, clientAddressHeader);
        void respond(res, question, answer, corsHeaders(question.header("origin"), allowedOrigins), { ...options, headOnly: true });
      });
    }
    app[method](path, (res, req) => {
      const question = readQuestion(res, req, path, clientAddressHeader);
      const cors = corsHeaders(question.header("origin"), allowedOrigins);
      if (method === "get" || method === "del") return void respond(res, question, answer, cors, options);
      bodies.read(res, bodyBytesMax, question.signal, (read) => {
        if (read.kind === "read") return respond(res, { ...question, body: read.body }, answer, cors, options);
        return respond(res, question, () => refusalOf(read.kind, bodyBytesMax), cors, options);
      });
    });
  }
  const refuse = (path: string, { status, headers, body }: HttpAnswer): void => {
    app.any(path, (res, req) => {
      const cors = corsHeaders(req.getHeader("origin"), allowedOrigins);
      const isHead = req.getMethod() === "head"; // What came behind its answer would be read as the next one's.
      res.cork(() => writeHead(res, status, { ...headers, ...cors }).end(isHead ? "" : String(body)));
    });
  };
  for (const [path, allow] of methodsByPath(routes)) refuse(path, errorAnswer(405, "method-not-allowed", `this takes ${allow}`, { allow }));
  refuse("/*", errorAnswer(404, "not-found", "there is nothing at this path"));
  app.options("/*", (res, req) => {
    const cors = corsHeaders(req.getHeader("origin"), allowedOrigins);
    res.cork(() => writeHead(res, 204, cors).end());
  });
}

function refusalOf(kind: Exclude<ReadBody["kind"], "read">, bytesMax: number): HttpAnswer {
  if (kind === "too-large") return errorAnswer(413, "too-large", `a body may have ${bytesMax} bytes`);
  return errorAnswer(503, "busy", "too many bodies are being read here: send it again", { "retry-after": "1" });
}

const METHODS: Readonly<Record<HttpRoute["method"], string>> = { get: "GET, HEAD", post: "POST", put: "PUT", del: "DELETE" };

/** As HTTP writes them. */
function methodsByPath(routes: readonly HttpRoute[]): ReadonlyMap<string, string> {
  const methods = new Map<string, string>();
  for (const { method, path } of routes) {
    if (path.includes("*")) continue; // Whatever no other path stands for.
    const before = methods.get(path);
    methods.set(path, before === undefined ? METHODS[method] : `${before}, ${METHODS[method]}`);
  }
  return methods;
}

async function respond(
  res: HttpResponse,
  question: HttpQuestion,
  answer: HttpRoute["answer"],
  cors: Record<string, string>,
  options: RespondOptions,
): Promise<void> {
  const given = await answered(question, answer, options.log);
  try {
    await send(res, given, question.signal, cors, options);
  } catch (cause) {
    if (question.signal.aborted) return; // Whoever asked has gone, and with it whatever was being read for it.
    options.log.error({ path: question.path, cause }, "an HTTP answer broke off");
    res.close(); // Its head may be out already: a broken line says that the rest is missing.
  } finally {
    given.onEnded?.();
  }
}

/** What a route fails at is told as such while nothing of its answer is out: NATS may be away, or a service just then. */
async function answered(question: HttpQuestion, answer: HttpRoute["answer"], log: Log): Promise<HttpAnswer> {
  try {
    return await answer(question);
  } catch (cause) {
    if (!question.signal.aborted) log.error({ path: question.path, cause }, "an HTTP request failed");
    return FAILED;
  }
}

async function send(
  res: HttpResponse,
  { status, headers = {}, body = "", bodyBytes }: HttpAnswer,
  signal: AbortSignal,
  cors: Record<string, string>,
  options: RespondOptions,
): Promise<void> {
  if (signal.aborted) return letGo(body);
  if (options.headOnly === true) {
    const length = typeof body === "string" || body instanceof Uint8Array ? Buffer.byteLength(body) : bodyBytes;
    const sized = length === undefined ? {} : { "content-length": String(length) }; // Told of it, uWebSockets.js would wait for a body.
    res.cork(() => writeHead(res, status, { ...headers, ...cors, ...sized }).endWithoutBody());
    return letGo(body);
  }
  if (typeof body === "string") return void res.cork(() => writeHead(res, status, { ...headers, ...cors }).end(body));
  if (body instanceof Uint8Array && body.byteLength === 0)
    return void res.cork(() => writeHead(res, status, { ...headers, ...cors }).end());
  if (body instanceof Uint8Array)
    return void (await sendWhole(res, body, () => writeHead(res, status, { ...headers, ...cors }), signal, options));
  res.cork(() => writeHead(res, status, { ...headers, ...cors }));
  if (bodyBytes === undefined) return sendUnsized(res, body, signal);
  return sendParts(res, body, bodyBytes, signal, options);
}

/** Nobody takes it any more: what comes in parts holds a connection until it is read or ended. */
export async function letGo(body: HttpAnswer["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return;
  for await (const part of body) return void part; // An iterator that has not begun ends nothing.
}

/** The request lives for this call only, so everything is read out of it. */
function readQuestion(res: HttpResponse, req: HttpRequest, path: string, clientAddressHeader: string): HttpQuestion {
  const gone = new AbortController();
  res.onAborted(() => gone.abort());
  const headers = new Map<string, string>();
  req.forEach((name, value) => headers.set(name, value));
  const count = path.split("/").filter((part) => part.startsWith(":")).length;
  const parameters = Array.from({ length: count }, (_, index) => req.getParameter(index) ?? "");
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

function writeHead(res: HttpResponse, status: number, headers: Readonly<Record<string, string>>): HttpResponse {
  res.writeStatus(`${status} ${STATUS_TEXTS[status] ?? "Status"}`);
  for (const [name, value] of Object.entries(headers)) res.writeHeader(name, value);
  return res;
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
  426: "Upgrade Required",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};
