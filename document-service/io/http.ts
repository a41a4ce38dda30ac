/**
 * The documents over HTTP, for gateways only: a gateway checks its client's token and then shows the secret
 * that the tiers share. Nothing is answered without it.
 *
 *   GET /v1/rooms/{room}/snapshot    x-coroom-internal: <secret>    x-coroom-tenant: <tenant>
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { assertNever } from "../../shared/assert.ts";
import { parseRoomId, parseTenantId, type RoomKey, roomKey } from "../../shared/ids.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { Served } from "../room-host.ts";

export type HttpOptions = { readonly documentsHost: string; readonly documentsPort: number; readonly internalSecret: string };

const RETRY_AFTER_SECONDS = 1;
const DRAIN_MS_MAX = 2_000;

export async function serveHttp(serve: (room: RoomKey) => Promise<Served>, options: HttpOptions, metrics: DocumentServiceMetrics): Promise<{ port: number; stop(): Promise<void> }> {
  const mayAsk = secretCheck(options.internalSecret);
  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      response.destroy(); // The asker asks again; the mistake is the process's.
      throw error;
    });
  });

  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const refuse = (status: number, error: string, message: string, headers: Record<string, string> = {}): void => {
      metrics.reads.inc({ answer: error });
      response.writeHead(status, { "content-type": "application/json", "cache-control": "no-cache", ...headers });
      response.end(JSON.stringify({ error, message }));
    };

    if (!mayAsk(request.headers["x-coroom-internal"])) return refuse(401, "unauthorized", "only gateways ask here: send x-coroom-internal");
    const room = requestedRoom(request);
    if (room === undefined) return refuse(404, "not-found", "GET /v1/rooms/{room}/snapshot with x-coroom-tenant is all there is");
    if (request.method !== "GET") return refuse(405, "method-not-allowed", "a snapshot can only be read", { allow: "GET" });

    const served = await serve(room);
    switch (served.kind) {
      case "snapshot":
        return sendSnapshot(served, request, response, metrics);
      case "no-document":
        return refuse(404, "no-document", "this room never had an edit");
      case "not-a-document":
        return refuse(404, "not-a-document", "this room's edits are no Yjs updates: there is no snapshot of them, join from the start");
      case "loading":
        return refuse(503, "loading", "this room's document is not ready: ask again", { "retry-after": String(RETRY_AFTER_SECONDS) });
      default:
        return assertNever(served);
    }
  };

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

function sendSnapshot({ state, position }: Served & { kind: "snapshot" }, request: IncomingMessage, response: ServerResponse, metrics: DocumentServiceMetrics): void {
  const etag = `"${position.epoch}-${position.seq}"`;
  const headers = { "x-coroom-seq": position.seq, "x-coroom-epoch": position.epoch, etag, "cache-control": "no-cache" };
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag)) {
    metrics.reads.inc({ answer: "unchanged" });
    response.writeHead(304, headers).end();
    return;
  }
  metrics.reads.inc({ answer: "snapshot" });
  response.writeHead(200, { ...headers, "content-type": "application/octet-stream", "content-length": state.byteLength });
  response.end(state);
}

function requestedRoom(request: IncomingMessage): RoomKey | undefined {
  const [path = ""] = (request.url ?? "").split("?");
  const encoded = /^\/v1\/rooms\/([^/]+)\/snapshot$/.exec(path)?.[1];
  const tenant = parseTenantId(String(request.headers["x-coroom-tenant"] ?? ""));
  const room = encoded === undefined ? undefined : parseRoomId(decode(encoded));
  return tenant === undefined || room === undefined ? undefined : roomKey(tenant, room);
}

/** Empty, which is no room, for a broken escape. */
function decode(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch (error) {
    if (error instanceof URIError) return "";
    throw error;
  }
}

/** Compares digests, so that the time taken tells nothing of the secret. */
function secretCheck(secret: string): (given: string | string[] | undefined) => boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const expected = digest(secret);
  return (given) => typeof given === "string" && timingSafeEqual(digest(given), expected);
}

function listen(server: Server, { documentsHost, documentsPort }: HttpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(new Error(`the document service cannot listen on ${documentsHost}:${documentsPort}: set COROOM_DOCUMENTS_PORT to a free port, or 0`, { cause })));
    server.listen(documentsPort, documentsHost, resolve);
  });
}
