/**
 * The clients' WebSockets on uWebSockets.js. A frame for many is handed over once and copied to each in C++
 * (listeners.ts); a connection that cannot take what is sent is cut, never skipped, so that an edit is not lost unseen.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { TemplatedApp, us_listen_socket, WebSocket } from "uws-node20";

import { CLOSE } from "../../shared/wire/close-codes.ts";
import { Connections } from "../connections.ts";
import { portTaken } from "../port-taken.ts";
import type { Clients, ConnectionId, Sockets, Topics } from "../ports.ts";
import { BehindClients, LOOK_MS } from "./behind-clients.ts";
import { type ClosingOptions, ClosingSockets } from "./closing-sockets.ts";
import { GatheredSends } from "./gathered-sends.ts";
import { Listeners } from "./listeners.ts";
import type { Uws } from "./load-uws.ts";
import { type Connection, type Door, type UpgradeOptions, upgrades } from "./upgrades.ts";

export type SocketOptions = UpgradeOptions &
  ClosingOptions & {
    readonly frameBytesMax: number;
    readonly outboundBytesMax: number;
    readonly slowBytesMax: number;
    readonly slowMsMax: number;
    readonly behindBytesMax: number;
    readonly silenceMsMax: number;
  };

type Socket = WebSocket<Connection>;

export const SOCKET_PATH = "/v1/connect";
const PATHS = [SOCKET_PATH, "/"];
/** For close frames to be read: a socket cut with something unread on it takes them along. */
const FAREWELL_MS = 250;
const IDLE_GRACE_SECONDS = 15;
const IDLE_SECONDS_MAX = 960;
/** What a text stands for: frames are binary. */
const NO_FRAME = new Uint8Array(0);
/** Frames up to so many times the limit are read, to be refused with a code; larger ones break the line. */
const OVERSIZE_FACTOR = 4;

/** `outboundBytes`: what clients have not taken yet, those among them that are being closed. `outboundP99Ms`: for how long the oldest of it waits, p99 of all. */
export function uwsSockets(
  app: TemplatedApp,
  options: SocketOptions,
  door: Door,
  lastOfTurn: (run: () => void) => void,
  onLooked: (behind: BehindClients, closing: ClosingSockets) => void,
): {
  sockets: Sockets;
  topics: Topics;
  outboundBytes(): number;
  outboundP99Ms(): number;
  start(clients: Clients): void;
  stop(): Promise<void>;
} {
  const open = new Connections<Socket>();
  const behind = new BehindClients(open, options);
  const closing = new ClosingSockets(options, LOOK_MS);
  const gathered = new GatheredSends(open, lastOfTurn);
  const upgrade = upgrades(options, door, () => open.size + closing.count);

  let clients: Clients | undefined;
  let looking: NodeJS.Timeout | undefined;

  const forget = (id: ConnectionId): void => {
    open.delete(id);
    clients?.receiveDisconnection(id);
  };

  const start = (toClients: Clients): void => {
    clients = toClients;
    for (const path of PATHS) {
      app.ws<Connection>(path, {
        upgrade,
        maxPayloadLength: options.frameBytesMax * OVERSIZE_FACTOR,
        maxBackpressure: options.outboundBytesMax,
        closeOnBackpressureLimit: true,
        idleTimeout: Math.min(IDLE_SECONDS_MAX, Math.ceil(options.silenceMsMax / 1000) + IDLE_GRACE_SECONDS), // A silent client is closed with a code before; this is for lines that are dead.
        sendPingsAutomatically: true,
        open: (socket) => {
          const { id, address } = socket.getUserData();
          open.set(id, socket);
          toClients.receiveConnection(id, address);
        },
        message: (socket, bytes, isBinary) => toClients.receiveFrame(socket.getUserData().id, isBinary ? new Uint8Array(bytes) : NO_FRAME),
        drain: (socket) => closing.receiveDrained(socket.getUserData().id),
        close: (socket) => {
          const { id } = socket.getUserData();
          if (!closing.receiveClosed(id)) forget(id);
        },
      });
    }
    looking = setInterval(() => look(toClients), LOOK_MS);
  };

  const look = (toClients: Clients): void => {
    for (const [connection, pace] of behind.look()) toClients.receivePace(connection, pace);
    closing.look();
    listeners.step();
    onLooked(behind, closing);
  };

  const send = (to: ConnectionId, frame: Uint8Array): void => {
    behind.sent(to, frame.byteLength);
    gathered.send(to, frame);
  };
  const beforePublish = (topic: string, frame: Uint8Array): void => {
    gathered.flush();
    behind.published(topic, frame.byteLength);
  };
  const listeners = new Listeners({ app, open, send, beforePublish }, { stepMs: LOOK_MS });

  const sockets: Sockets = {
    send,
    publish: (channel, frame, except) => listeners.publish(String(channel), frame, except),
    listen: (connection, channel) => listeners.listen(connection, String(channel)),
    unlisten: (connection, channel) => listeners.unlisten(connection, String(channel)),
    close: (connection, close) => {
      gathered.flush();
      const socket = open.get(connection);
      if (socket === undefined) return;
      if (socket.getBufferedAmount() === 0) return void socket.end(CLOSE[close].code, CLOSE[close].meaning);
      closing.add(connection, socket, close);
      forget(connection);
    },
  };

  const stop = async (): Promise<void> => {
    clearInterval(looking);
    gathered.flush();
    await sleep(FAREWELL_MS);
    app.close();
  };

  const topics: Topics = {
    publishTo: (topic, frame, except) => listeners.publish(topic, frame, except),
    listenTo: (connection, topic) => listeners.listen(connection, topic),
    unlistenTo: (connection, topic) => listeners.unlisten(connection, topic),
  };

  return { sockets, topics, outboundBytes: () => behind.bytes + closing.bytes, outboundP99Ms: () => behind.p99AgeMs, start, stop };
}

/** What index.d.ts leaves out: the constant, and a host together with options. */
type ExclusiveListen = { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number };
type ListenOnHost = { listen(host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void): void };

/** Throws a StartError when the port cannot be had. `close` takes no more connections; those open stay. */
export function listen(
  uws: Uws,
  app: TemplatedApp,
  { host, port }: { host: string; port: number },
): Promise<{ port: number; close(): void }> {
  // Without it two gateways would share a port unnoticed.
  const { LIBUS_LISTEN_EXCLUSIVE_PORT: exclusive } = uws as unknown as ExclusiveListen;
  return new Promise((resolve, reject) => {
    (app as unknown as ListenOnHost).listen(host, port, exclusive, (socket) => {
      if (socket === false) return reject(portTaken({ host, port }));
      resolve({ port: uws.us_socket_local_port(socket), close: () => uws.us_listen_socket_close(socket) });
    });
  });
}
