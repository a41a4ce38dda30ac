/** A socket in browsers. A bundler for browsers puts this file in place of node-socket.ts (see package.json). */

import type { OpenSocket } from "../ports.ts";

const ASK_MS_MAX = 3_000;
const BLOCKED =
  "no WebSocket opens, but HTTP requests are answered there. A proxy in between may not pass WebSockets, or COROOM_ALLOWED_ORIGINS lacks this page's origin";

/** True: nothing between this page and its server blocks WebSockets. */
let hasOpened = false;

export const openSocket: OpenSocket = (url, listener) => {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    hasOpened = true;
    listener.opened();
  };
  // A text message is not a frame. It is passed on as zero bytes, which the decoder rejects.
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) =>
    listener.received(typeof data === "string" ? new Uint8Array() : new Uint8Array(data));
  socket.onclose = async ({ code, reason }) => {
    const why = reason || (hasOpened ? undefined : await blockedReason(url));
    if (socket.onclose !== null) listener.closed(code, why);
  };
  socket.onerror = () => {}; // "close" follows. Browsers report the cause in their console only.
  return {
    send: (bytes) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes as Uint8Array<ArrayBuffer>);
    },
    close: () => {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    },
  };
};

async function blockedReason(url: string): Promise<string | undefined> {
  try {
    await fetch(url.replace("ws", "http"), { method: "HEAD", mode: "no-cors", cache: "no-store", signal: AbortSignal.timeout(ASK_MS_MAX) });
    return BLOCKED;
  } catch {
    return undefined;
  }
}
