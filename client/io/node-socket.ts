/** A socket in Node. Node's own WebSocket exists only from version 22 on. */

import { WebSocket } from "ws";

import type { OpenSocket, Socket, SocketListener } from "../ports.ts";
import { retryAfterMsOf } from "./fetch-snapshot.ts";

const PAYLOAD_BYTES_MAX = 64 * 1024 ** 2;
/** Maximum wait for the peer's answer to a close. */
const CLOSING_MS_MAX = 1_000;

export const openSocket: OpenSocket = (url, listener) => openSocketWith({}, url, listener);

/** `headers`: additional headers of the WebSocket request. */
export function openSocketWith(headers: Readonly<Record<string, string>>, url: string, listener: SocketListener): Socket {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false, maxPayload: PAYLOAD_BYTES_MAX });
  socket.binaryType = "arraybuffer";
  let isListening = true;
  let [why, retryAfterMs]: [string?, number?] = [];
  socket.on("open", () => isListening && listener.opened());
  // A text message is not a frame. It is passed on as zero bytes, which the decoder rejects.
  socket.on(
    "message",
    (data, isBinary) => isListening && listener.received(isBinary ? new Uint8Array(data as ArrayBuffer) : new Uint8Array()),
  );
  socket.on("close", (code, reason) => isListening && listener.closed(code, why ?? (reason.toString() || undefined), retryAfterMs));
  socket.on("error", (error) => (why ??= textOf(error))); // "close" follows.
  socket.on("unexpected-response", (_request, { statusCode, statusMessage, headers }) => {
    [why, retryAfterMs] = [`HTTP ${statusCode} ${statusMessage}`, retryAfterMsOf(headers["retry-after"])];
    socket.terminate(); // "close" follows here too.
  });
  return {
    send: (bytes) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
    },
    close: () => {
      isListening = false;
      socket.close();
      setTimeout(() => socket.terminate(), CLOSING_MS_MAX).unref();
    },
  };
}

/** If no address of a host name answers, the error's own message is empty. */
function textOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(String).join("; ") : error.message;
}
