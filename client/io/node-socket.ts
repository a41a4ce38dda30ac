/** A socket in Node, whose own WebSocket came with version 22. */

import { WebSocket } from "ws";

import type { OpenSocket } from "../ports.ts";
import { retryAfterMsOf } from "./retry-after.ts";

const PAYLOAD_BYTES_MAX = 64 * 1024 ** 2;
/** A peer that does not answer the close is not waited for. */
const CLOSING_MS_MAX = 1_000;

export const openSocket: OpenSocket = (url, listener) => openSocketWith({}, url, listener);

/** `headers`: said to the server beside what a WebSocket says. */
export const openSocketWith = (
  headers: Readonly<Record<string, string>>,
  ...[url, listener]: Parameters<OpenSocket>
): ReturnType<OpenSocket> => {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false, maxPayload: PAYLOAD_BYTES_MAX });
  socket.binaryType = "arraybuffer";
  let heard = true;
  let [why, retryAfterMs]: [string?, number?] = [];
  socket.on("open", () => heard && listener.opened());
  // A text message is no frame; read as no bytes, it is refused as one.
  socket.on("message", (data, isBinary) => heard && listener.received(isBinary ? new Uint8Array(data as ArrayBuffer) : new Uint8Array()));
  socket.on("close", (code) => heard && listener.closed(code, why, retryAfterMs));
  socket.on("error", (error) => (why ??= textOf(error))); // "close" follows.
  socket.on("unexpected-response", (_request, { statusCode, statusMessage, headers }) => {
    [why, retryAfterMs] = [`HTTP ${statusCode} ${statusMessage}`, retryAfterMsOf(headers["retry-after"])];
    socket.terminate(); // Likewise.
  });
  return {
    send: (bytes) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
    },
    close: () => {
      heard = false;
      socket.close();
      setTimeout(() => socket.terminate(), CLOSING_MS_MAX).unref();
    },
  };
};

/** Where a name leads to several addresses, none of which answers, the error itself says nothing. */
function textOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(String).join("; ") : error.message;
}
