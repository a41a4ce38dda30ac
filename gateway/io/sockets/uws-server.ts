/**
 * The clients' WebSockets on uWebSockets.js. A frame for many clients is passed to uWebSockets.js once, which copies it
 * in C++ (`TopicListeners`). The frames of a turn to one client are written together (`GatheredSends`). A connection
 * that cannot take its data is cut. No frame is ever skipped, so an edit is never lost unnoticed.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { TemplatedApp, us_listen_socket, WebSocket } from "uWebSockets.js-glibc-2.36";

import { CLOSE, CLOSE_MEANINGS, isGatewayClose } from "../../../shared/wire/close-codes.ts";
import { Connections } from "../../connections.ts";
import { portTaken } from "../../config.ts";
import type { Clients, ConnectionId, Sockets, Topics } from "../../ports.ts";
import { AwaitedReads } from "./awaited-reads.ts";
import { SlowReaders, CHECK_MS } from "./slow-readers.ts";
import { type ClosingOptions, ClosingSockets } from "./closing-sockets.ts";
import { GatheredSends } from "./gathered-sends.ts";
import type { Uws } from "./load-uws.ts";
import { type AcceptedSocket, type UpgradePolicy, type UpgradeOptions, upgrades } from "./upgrades.ts";

type SocketOptions = UpgradeOptions &
  ClosingOptions & {
    readonly messageBytesMax: number;
    readonly outboundBytesMax: number;
    readonly slowBytesMax: number;
    readonly slowMsMax: number;
    readonly behindBytesMax: number;
    readonly silenceMsMax: number;
  };

type Socket = WebSocket<AcceptedSocket>;

/** Every path, because y-websocket adds the room to the URL, and browsers hide the answer to a refused upgrade from pages. */
const EVERY_PATH = "/*";
/** Time for clients to read their close frames: cutting a socket drops its unread data. */
const FAREWELL_MS = 250;
const IDLE_GRACE_SECONDS = 15;
const IDLE_SECONDS_MAX = 960;
/** Replaces a text message, which is invalid because frames are binary. */
const NO_FRAME = new Uint8Array(0);
/**
 * A message up to this many times the limit is read and refused with a close code. A larger one breaks the connection.
 * uWebSockets.js holds an incomplete message itself and reports nothing of it, so a connection may cost this much.
 */
const OVERSIZE_FACTOR = 2;

/** `network`: the connection was lost without a close frame. */
type EndCause = "gateway" | "client" | "network";
/** `onLooked`: called several times a second. */
type SocketWatch = {
  readonly onLooked: (behind: SlowReaders, closing: ClosingSockets) => void;
  readonly onEnded: (cause: EndCause) => void;
};
/** The code of uWebSockets.js for a connection without a close frame. */
const LOST = 1006;

/**
 * `outboundBytes`: bytes that clients have not read, closing clients included. `outboundP99Ms`: age of the oldest
 * unread data, p99 of all connections.
 */
export function uwsSockets(
  app: TemplatedApp,
  options: SocketOptions,
  policy: UpgradePolicy,
  lastOfTurn: (run: () => void) => void,
  { onLooked, onEnded }: SocketWatch,
): {
  sockets: Sockets;
  topics: Topics;
  outboundBytes(): number;
  outboundP99Ms(): number;
  start(clients: Clients): void;
  stop(): Promise<void>;
} {
  const open = new Connections<Socket>();
  const reads = new AwaitedReads(open, lastOfTurn);
  const behind = new SlowReaders(open, options, (connection) => reads.has(connection));
  const closing = new ClosingSockets(options, CHECK_MS);
  const gathered = new GatheredSends(open, lastOfTurn);
  const upgrade = upgrades(options, policy, () => open.size + closing.count);
  /** Connections above `outboundBytesMax`, until they are closed. */
  const cut = new Set<ConnectionId>();

  let clients: Clients | undefined;
  let looking: NodeJS.Timeout | undefined;

  const forget = (id: ConnectionId): void => {
    open.delete(id);
    reads.forget(id);
    clients?.receiveDisconnection(id);
  };

  const start = (toClients: Clients): void => {
    clients = toClients;
    app.ws<AcceptedSocket>(EVERY_PATH, {
      upgrade,
      maxPayloadLength: options.messageBytesMax * OVERSIZE_FACTOR,
      maxBackpressure: options.outboundBytesMax,
      closeOnBackpressureLimit: true,
      idleTimeout: Math.min(IDLE_SECONDS_MAX, Math.ceil(options.silenceMsMax / 1000) + IDLE_GRACE_SECONDS), // A silent client is closed with a code earlier; this timeout is for dead connections.
      sendPingsAutomatically: true,
      open: (socket) => {
        const { id, address } = socket.getUserData();
        open.set(id, socket);
        toClients.receiveConnection(id, address);
      },
      message: (socket, bytes, isBinary) => {
        const { id } = socket.getUserData();
        if (socket.getBufferedAmount() > options.outboundBytesMax) {
          cut.add(id);
          return void socket.close(); // uWebSockets.js cuts it only after all messages that have arrived, and each may request a megabyte.
        }
        toClients.receiveFrame(id, isBinary ? new Uint8Array(bytes) : NO_FRAME);
      },
      dropped: (socket) => void cut.add(socket.getUserData().id),
      drain: (socket) => {
        const { id } = socket.getUserData();
        closing.receiveDrained(id);
        reads.receiveDrained(id);
      },
      close: (socket, code) => {
        const { id } = socket.getUserData();
        const isClosing = closing.receiveClosed(id);
        const isCut = cut.delete(id);
        onEnded(isClosing || isCut || isGatewayClose(code) ? "gateway" : code === LOST ? "network" : "client");
        if (isCut) toClients.receiveReadProgress(id, "cut");
        if (!isClosing) forget(id);
      },
    });
    looking = setInterval(() => look(toClients), CHECK_MS);
  };

  const look = (toClients: Clients): void => {
    for (const [connection, progress] of behind.look()) toClients.receiveReadProgress(connection, progress);
    closing.look();
    reads.look();
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
    whenRead: (connection, receive) => reads.add(connection, receive),
    close: (connection, close) => {
      gathered.flush();
      const socket = open.get(connection);
      if (socket === undefined) return;
      if (socket.getBufferedAmount() === 0) return void socket.end(CLOSE[close].code, CLOSE_MEANINGS[close]);
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

/** Missing in index.d.ts: the constant, and `listen` with both a host and options. */
type ExclusiveListen = { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number };
type ListenOnHost = { listen(host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void): void };

/** Throws a StartError when the port cannot be bound. `close` stops accepting connections and keeps the open ones. */
export function listen(
  uws: Uws,
  app: TemplatedApp,
  { host, port }: { host: string; port: number },
): Promise<{ port: number; close(): void }> {
  // Without this option two gateways would share a port unnoticed.
  const { LIBUS_LISTEN_EXCLUSIVE_PORT: exclusive } = uws as unknown as ExclusiveListen;
  return new Promise((resolve, reject) => {
    (app as unknown as ListenOnHost).listen(host, port, exclusive, (socket) => {
      if (socket === false) return reject(portTaken({ host, port }));
      resolve({ port: uws.us_socket_local_port(socket), close: () => uws.us_listen_socket_close(socket) });
    });
  });
}

type TopicSocket = Pick<WebSocket<unknown>, "subscribe" | "unsubscribe" | "publish">;

type TopicListenersPorts = {
  readonly app: Pick<TemplatedApp, "publish">;
  readonly open: ReadonlyMap<ConnectionId, TopicSocket>;
  readonly send: (to: ConnectionId, frame: Uint8Array) => void;
  /** Called before a frame goes to a uWebSockets.js topic: frames that were sent earlier must not arrive after it. */
  readonly beforePublish: (topic: string, frame: Uint8Array) => void;
};

const NOBODY: readonly never[] = [];

/** `frames` counts since the current window began. */
type Topic = { readonly listeners: Set<ConnectionId>; frames: number };

const WINDOW_MS = 10_000;
/** More frames than this in a window create a topic. A window without frames removes it. */
export const FRAMES_SENT_MAX = 16;
export const LISTENERS_SENT_MAX = 16;

/**
 * Connections by the topics that they listen to. In uWebSockets.js a topic costs over a hundred bytes per listener
 * outside V8's heap, and as much again for a connection's first topic. Most rooms are quiet for minutes. So a topic is
 * created in uWebSockets.js only while frames are frequent or listeners are many. Otherwise each listener is sent its
 * own frame.
 */
export class TopicListeners {
  readonly #ports: TopicListenersPorts;
  readonly #stepsPerWindow: number;
  #steps = 0;
  readonly #topics = new Map<string, Topic>();
  /** Listeners of names that are not topics. */
  readonly #few = new Map<string, readonly ConnectionId[]>();
  /** Frames sent to them since the current window began. */
  readonly #sent = new Map<string, number>();

  constructor(ports: TopicListenersPorts, { stepMs }: { stepMs: number }) {
    this.#ports = ports;
    this.#stepsPerWindow = Math.ceil(WINDOW_MS / stepMs);
  }

  listen(connection: ConnectionId, name: string): void {
    const socket = this.#ports.open.get(connection);
    if (socket === undefined) return; // The connection has closed meanwhile.
    const topic = this.#topics.get(name);
    if (topic !== undefined) {
      topic.listeners.add(connection);
      socket.subscribe(name);
      return;
    }
    const few = this.#few.get(name) ?? NOBODY;
    if (few.includes(connection)) return;
    this.#few.set(name, few.concat([connection])); // push() would allocate space for sixteen more entries.
    if (few.length === LISTENERS_SENT_MAX) this.#makeTopic(name);
  }

  unlisten(connection: ConnectionId, name: string): void {
    const topic = this.#topics.get(name);
    if (topic !== undefined) {
      this.#ports.open.get(connection)?.unsubscribe(name);
      topic.listeners.delete(connection);
      if (topic.listeners.size === 0) this.#topics.delete(name);
      return;
    }
    const few = this.#few.get(name) ?? NOBODY;
    const place = few.indexOf(connection);
    if (place < 0) return;
    if (few.length === 1) this.#few.delete(name);
    else this.#few.set(name, few.toSpliced(place, 1));
  }

  /** `frame` must not change until the turn of the event loop ends. Returns the number of recipients. */
  publish(name: string, frame: Uint8Array, except: ConnectionId | undefined): number {
    const topic = this.#topics.get(name) ?? this.#sendToFew(name, frame, except);
    if (typeof topic === "number") return topic;
    topic.frames += 1;
    const { app, open, beforePublish } = this.#ports;
    beforePublish(name, frame);
    // uWebSockets.js publishes nothing for a socket that listens to nothing.
    const excepted = except !== undefined && topic.listeners.has(except) ? open.get(except) : undefined;
    if (excepted === undefined) app.publish(name, frame, true);
    else excepted.publish(name, frame, true); // A socket's publication goes to every listener but itself.
    return topic.listeners.size - (excepted === undefined ? 0 : 1);
  }

  /** Every `stepMs`. */
  step(): void {
    this.#steps += 1;
    if (this.#steps % this.#stepsPerWindow !== 0) return;
    this.#sent.clear();
    for (const [name, topic] of this.#topics) {
      if (topic.frames === 0 && topic.listeners.size <= LISTENERS_SENT_MAX) this.#dissolve(name, topic); // No frame of it is on its way.
      topic.frames = 0;
    }
  }

  /**
   * Returns the number of recipients; or the topic if frames have become so frequent that the name is now a topic. The
   * frame is then published.
   */
  #sendToFew(name: string, frame: Uint8Array, except: ConnectionId | undefined): Topic | number {
    const few = this.#few.get(name);
    if (few === undefined) return 0;
    const sent = (this.#sent.get(name) ?? 0) + 1;
    if (sent > FRAMES_SENT_MAX) return this.#makeTopic(name);
    this.#sent.set(name, sent);
    for (const connection of few) if (connection !== except) this.#ports.send(connection, frame);
    return few.length - (except !== undefined && few.includes(except) ? 1 : 0);
  }

  #makeTopic(name: string): Topic {
    const topic: Topic = { listeners: new Set(this.#few.get(name)), frames: 0 };
    this.#few.delete(name);
    this.#sent.delete(name);
    this.#topics.set(name, topic);
    for (const connection of topic.listeners) this.#ports.open.get(connection)?.subscribe(name);
    return topic;
  }

  #dissolve(name: string, { listeners }: Topic): void {
    this.#topics.delete(name);
    for (const connection of listeners) this.#ports.open.get(connection)?.unsubscribe(name);
    this.#few.set(name, [...listeners]);
  }
}
