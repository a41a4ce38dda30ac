/** A socket in browsers. A bundler for browsers puts this file in place of node-socket.ts (see package.json). */

import type { OpenSocket } from "../ports.ts";

export const openSocket: OpenSocket = (url, listener) => {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => listener.opened();
  // A text message is not a frame. It is passed on as zero bytes, which the decoder rejects.
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) =>
    listener.received(typeof data === "string" ? new Uint8Array() : new Uint8Array(data));
  socket.onclose = ({ code, reason }) => listener.closed(code, reason || undefined);
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
