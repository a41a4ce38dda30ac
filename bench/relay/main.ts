/**
 * Runs one process of the relay, or a server of another project that has no program of its own: `node main.js
 * gateway|sequencer|bare|cached|naive|tick|hocuspocus`, with settings from RELAY_… variables.
 */

import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import type { GatewayId, ClientId, Epoch, Seq } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import { loadUws } from "../../gateway/io/sockets/load-uws.ts";
import { startCachedServer } from "./cached-server.ts";
import { startRelayGateway, listen, welcome } from "./gateway.ts";
import { startPresenceServer } from "./presence-server.ts";
import { startRelaySequencer } from "./sequencer.ts";

/**
 * The floor for joined connections: uWebSockets.js alone with Coroom's frames. It accepts every client, subscribes it
 * to its room, and forwards nothing.
 */
const CLIENT = "nobody_in_general".slice(0, 16) as ClientId;

async function startBareServer(port: number): Promise<void> {
  const app = loadUws().App();
  app.ws<object>("/*", {
    message: (ws, message) => {
      const frame = decodeFrame(new Uint8Array(message));
      switch (frame?.type) {
        case "hello":
          return send(ws, welcome(CLIENT));
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

/** `database`: file of the SQLite database; undefined keeps documents in memory. The statements are those of Hocuspocus's own SQLite extension. */
async function startHocuspocus(port: number, database: string | undefined): Promise<void> {
  const [{ Server }, { Database }, { default: Sqlite }] = await Promise.all([
    import("@hocuspocus/server"),
    import("@hocuspocus/extension-database"),
    import("libsql"),
  ]);
  const db = database === undefined ? undefined : new Sqlite(database);
  db?.exec('CREATE TABLE IF NOT EXISTS "documents" ("name" varchar(255) NOT NULL, "data" blob NOT NULL, UNIQUE(name))');
  const select = db?.prepare('SELECT data FROM "documents" WHERE name = ?');
  const upsert = db?.prepare('INSERT INTO "documents" ("name", "data") VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET data = excluded.data');
  const stored = new Database({
    fetch: async ({ documentName }) => (select!.get(documentName) as { data: Uint8Array } | undefined)?.data ?? null,
    store: async ({ documentName, state }) => void upsert!.run(documentName, state),
  });
  // Readers of the bench send nothing for minutes.
  const server = new Server({ port, address: "127.0.0.1", quiet: true, timeout: 600_000, extensions: db === undefined ? [] : [stored] });
  await server.listen();
}

const natsUrl = process.env["RELAY_NATS_URL"] ?? "nats://127.0.0.1:4222";
const environment = "relay";

const port = Number(process.env["RELAY_PORT"]);

if (process.argv[2] === "sequencer") await startRelaySequencer({ natsUrl, environment });
else if (process.argv[2] === "bare") await startBareServer(port);
else if (process.argv[2] === "cached") await startCachedServer(port);
else if (process.argv[2] === "naive" || process.argv[2] === "tick") await startPresenceServer(process.argv[2], port);
else if (process.argv[2] === "hocuspocus") await startHocuspocus(port, process.env["RELAY_DATABASE"]);
else await startRelayGateway({ natsUrl, environment, gateway: `g${process.env["RELAY_GATEWAY"]}` as GatewayId, port });

process.on("SIGTERM", () => process.exit(0));
process.stdout.write("relay ready\n");
