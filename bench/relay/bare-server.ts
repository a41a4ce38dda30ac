/**
 * The least that can hold a joined connection: uWebSockets.js alone, in Coroom's own frames. Lets everybody into the
 * room they name, subscribes them to it, and passes nothing on.
 */

import type { WebSocket } from "uws-node20";

import { loadUws } from "../../gateway/io/load-uws.ts";
import type { ClientId, Epoch, Seq } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { PROTOCOL_VERSION, type ServerFrame } from "../../shared/wire/frames.ts";
import { LIMITS, listen } from "./gateway.ts";

const CLIENT = "nobody_in_general".slice(0, 16) as ClientId;

export async function startBareServer(port: number): Promise<void> {
  const app = loadUws().App();
  app.ws<object>("/*", {
    message: (ws, message) => {
      const frame = decodeFrame(new Uint8Array(message));
      switch (frame?.type) {
        case "hello":
          return send(ws, { type: "welcome", version: PROTOCOL_VERSION, connection: CLIENT, limits: LIMITS, tokenExpiresInMs: 3_600_000 });
        case "join":
          ws.subscribe(frame.room);
          return send(ws, {
            type: "joined",
            request: frame.request,
            channel: 1,
            client: CLIENT,
            epoch: 1 as Epoch,
            head: 0 as Seq,
            rights: { read: true, write: true },
          });
        case "ping":
          return send(ws, { type: "pong", nonce: frame.nonce });
        default:
          ws.end();
      }
    },
  });
  await listen(app, port);
}

function send(ws: WebSocket<object>, frame: ServerFrame): void {
  ws.send(encodeFrame(frame), true);
}
