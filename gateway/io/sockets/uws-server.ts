/**
 * The clients' WebSockets on uWebSockets.js. A frame for many clients is handed over once and copied in C++
 * (topic-listeners.ts). A connection that cannot take its data is cut. No frame is ever skipped, so an edit is never
 * lost unnoticed.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { TemplatedApp, us_listen_socket, WebSocket } from "uWebSockets.js-glibc-2.36";

import { CLOSE } from "../../../shared/wire/close-codes.ts";
import { SOCKET_PATH } from "../../http/route-table.ts";
import { Connections } from "../../connections.ts";
import { portTaken } from "../../config.ts";
import type { Clients, ConnectionId, Sockets, Topics } from "../../ports.ts";
import { SlowReaders, CHECK_MS } from "./slow-readers.ts";
import { type ClosingOptions, ClosingSockets } from "./closing-sockets.ts";
import { TopicListeners } from "./topic-listeners.ts";
import type { Uws } from "./load-uws.ts";
import { type AcceptedSocket, type UpgradePolicy, type UpgradeOptions, upgrades } from "./upgrades.ts";

export type SocketOptions = UpgradeOptions &
  ClosingOptions & {
    readonly frameBytesMax: number;
    readonly outboundBytesMax: number;
    readonly slowBytesMax: number;
    readonly slowMsMax: number;
    readonly behindBytesMax: number;
    readonly silenceMsMax: number;
  };

type Socket = WebSocket<AcceptedSocket>;

const PATHS = [SOCKET_PATH, "/"];
/** Time for clients to read their close frames: cutting a socket drops its unread data. */
const FAREWELL_MS = 250;
const IDLE_GRACE_SECONDS = 15;
const IDLE_SECONDS_MAX = 960;
/** Stands for a text message: frames are binary. */
const NO_FRAME = new Uint8Array(0);
/**
 * A frame up to this many times the limit is read and refused with a close code. A larger one breaks the connection.
 */
const OVERSIZE_FACTOR = 4;

/**
 * `outboundBytes`: bytes that clients have not read, closing clients included. `outboundP99Ms`: age of the oldest
 * unread data, p99 of all connections.
 */
export function uwsSockets(
  app: TemplatedApp,
  options: SocketOptions,
  door: UpgradePolicy,
  lastOfTurn: (run: () => void) => void,
  onLooked: (behind: SlowReaders, closing: ClosingSockets) => void,
): {
  sockets: Sockets;
  topics: Topics;
  outboundBytes(): number;
  outboundP99Ms(): number;
  start(clients: Clients): void;
  stop(): Promise<void>;
} {
  const open = new Connections<Socket>();
  const behind = new SlowReaders(open, options);
  const closing = new ClosingSockets(options, CHECK_MS);
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
      app.ws<AcceptedSocket>(path, {
        upgrade,
        maxPayloadLength: options.frameBytesMax * OVERSIZE_FACTOR,
        maxBackpressure: options.outboundBytesMax,
        closeOnBackpressureLimit: true,
        idleTimeout: Math.min(IDLE_SECONDS_MAX, Math.ceil(options.silenceMsMax / 1000) + IDLE_GRACE_SECONDS), // A silent client is closed with a code earlier; this timeout is for dead connections.
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
    looking = setInterval(() => look(toClients), CHECK_MS);
  };

  const look = (toClients: Clients): void => {
    for (const [connection, pace] of behind.look()) toClients.receivePace(connection, pace);
    closing.look();
    listeners.step();
    onLooked(behind, closing);
  };

  const send = (to: ConnectionId, frame: Uint8Array): void => {
    behind.countSent(to, frame.byteLength);
    gathered.send(to, frame);
  };
  const beforePublish = (topic: string, frame: Uint8Array): void => {
    gathered.flush();
    behind.countPublished(topic, frame.byteLength);
  };
  const listeners = new TopicListeners({ app, open, send, beforePublish }, { stepMs: CHECK_MS });

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

/** Missing from index.d.ts: the constant, and a host together with options. */
type ExclusiveListen = { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number };
type ListenOnHost = { listen(host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void): void };

/** Throws a StartError when the port cannot be bound. `close` stops accepting connections and keeps the open ones. */
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

/**
 * Gathers the frames to each client within a turn of the event loop and writes them once at its end: a joining client
 * is sent three or more frames, and a write costs more than they do.
 */
export class GatheredSends {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "send" | "cork">>;
  readonly #lastOfTurn: (run: () => void) => void;
  /**
   * Nearly always a single frame: an array per client would outlive a garbage collection when thousands are answered in
   * a turn.
   */
  readonly #waiting = new Map<ConnectionId, Uint8Array | Uint8Array[]>();

  constructor(open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "send" | "cork">>, lastOfTurn: (run: () => void) => void) {
    this.#open = open;
    this.#lastOfTurn = lastOfTurn;
  }

  /** `frame` is read when it is written, and must not change before. */
  send(to: ConnectionId, frame: Uint8Array): void {
    const waiting = this.#waiting.get(to);
    if (Array.isArray(waiting)) return void waiting.push(frame);
    if (this.#waiting.size === 0) this.#lastOfTurn(() => this.flush());
    this.#waiting.set(to, waiting === undefined ? frame : [waiting, frame]);
  }

  /**
   * Writes before the end of the turn, so that a later publication does not overtake the frames. A send may close a
   * socket, and that may flush again.
   */
  flush(): void {
    for (const to of this.#waiting.keys()) {
      const frames = this.#waiting.get(to)!;
      this.#waiting.delete(to);
      const socket = this.#open.get(to); // Undefined when the connection has closed meanwhile.
      if (Array.isArray(frames)) socket?.cork(() => frames.forEach((frame) => socket.send(frame, true)));
      else socket?.send(frames, true);
    }
  }
}
