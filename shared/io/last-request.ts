/**
 * Answers requests of strangers, and parses nothing after the head of the first one of a connection. Otherwise one read of
 * a connection could hold thousands of requests, or of chunks of a body, each of which costs an event: twenty connections
 * stop a process.
 */

import { IncomingMessage, type ServerOptions, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/** Time for the head of a request. By default Node closes a connection whose head is unfinished only after 60 to 90 s. */
const HEAD_MS_MAX = 15_000;
/** Node's limit for a whole request. `createServer` throws for a longer time of the head. */
const REQUEST_MS_MAX = 300_000;

/** Options of a server. A connection whose head, or TLS handshake, takes longer is closed, with 408 if it is a head. */
export function lastRequestServer(
  isLast: (request: IncomingMessage) => boolean,
  headMsMax = HEAD_MS_MAX,
): ServerOptions & { readonly handshakeTimeout: number } {
  const headMs = Math.min(headMsMax, REQUEST_MS_MAX);
  return {
    IncomingMessage: lastRequests(isLast),
    headersTimeout: headMs,
    connectionsCheckingInterval: Math.ceil(headMs / 2),
    handshakeTimeout: headMs,
  };
}

/** `isLast`: called with the head of a request. Node gives the connection of such a request to "upgrade" and reads no more. */
function lastRequests(isLast: (request: IncomingMessage) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    get upgrade(): boolean {
      return isLast(this);
    }

    set upgrade(_: boolean) {}
  };
}

type LastAnswer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Uint8Array | string;
};

/** Time for the client to read the answer. A connection that is closed with unread bytes may lose it. */
const READ_MS = 1_000;

/** Answers the request of a connection that was given to "upgrade", and closes the connection. */
export function answerLast({ method }: IncomingMessage, stream: Duplex, { status, headers = {}, body = "" }: LastAnswer): void {
  stream.on("error", () => stream.destroy()); // The connection broke.
  const fields = Object.entries({ ...headers, "connection": "close", "content-length": Buffer.byteLength(body) });
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  stream.write(`${head.join("\r\n")}\r\n\r\n`);
  stream.end(method === "HEAD" ? "" : body);
  setTimeout(() => stream.destroy(), READ_MS).unref();
}
