/**
 * WebSocket server for two kinds of clients. A y-websocket client connects to `ws://host:port/room?token=…`, the URL
 * that its provider builds from server, room and `params`. A Hocuspocus client connects to `ws://host:port`.
 */

import { createServer, type IncomingMessage, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

import { type WebSocket, WebSocketServer } from "ws";

import { clientAddressOf } from "../../shared/limits/client-address.ts";
import { parseRoomId, ROOM_ID_RULE } from "../../shared/ids.ts";
import { lastRequestServer } from "../../shared/io/last-request.ts";
import { isAllowedOrigin } from "../../shared/settings/origins.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import type { YRejection, YClientAdmission, YOrigin, YSeat, YSocketListener, YStranger, YWebSocket } from "../ports.ts";
import { Y_CLOSE } from "../y-connection.ts";

export type YProtocol = "y-websocket" | "hocuspocus";
type YSocketsOptions = {
  readonly protocols: readonly YProtocol[];
  readonly host: string;
  readonly port: number;
  readonly allowedOrigins: readonly string[];
  /** In lower case; empty if there is no trusted load balancer. */
  readonly addressHeader: string;
  readonly messageBytesMax: number;
  /** For the head of a request, which becomes a WebSocket. */
  readonly headMsMax: number;
  /** `origin` is the text of the request, and any client can choose it. */
  readonly onForeignOrigin: (origin: string) => void;
};

type YSockets = { readonly port: number; close(): Promise<void> };

/** A client that does not answer a ping within this time is disconnected. */
const PING_MS = 30_000;
/** Time for a client to answer a close frame. Until then it counts as a client. */
const CLOSE_ANSWER_MS = 5_000;
/** Time for clients to read the close frames. */
const FAREWELL_MS = 250;
/** Pieces of one message. `ws` holds each as an object, however small it is; no browser sends as many. */
const FRAGMENTS_MAX = 1_024;
/** Of a ping or pong from a client, with its mask. */
const CONTROL_HEADER_BYTES = 6;
/** Pings of a client with more unread bytes are not answered. */
const PONG_UNREAD_BYTES_MAX = 65_536;
/** Estimated bytes of an unread message in addition to its content. */
const UNREAD_OVERHEAD_BYTES = 256;
/** Error code of `ws`. */
const TOO_LARGE = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
const BASE = "ws://host";
/** HTTP answers, which browsers hide from pages. A close that pages can read would cost a socket under a flood. */
const REFUSALS: Readonly<Record<YRejection | "plain", { readonly status: number; readonly message: string }>> = {
  full: { status: 503, message: "this server has reached its maximum number of clients: try again later, or use another server" },
  address: {
    status: 429,
    message: "too many clients from this address: close some, or try again later. Behind a load balancer set COROOM_CLIENT_ADDRESS_HEADER.",
  },
  stopping: { status: 503, message: "this server is stopping: try again, or use another server" },
  plain: {
    status: 426,
    message: "this port serves y-websocket and Hocuspocus clients only. Connect with WebsocketProvider or HocuspocusProvider.",
  },
  origin: { status: 403, message: "pages of this origin may not connect. Add the origin to COROOM_ALLOWED_ORIGINS." },
};
/** The reason of a close has space for 123 bytes. */
const REMEDIES = {
  room: ROOM_ID_RULE,
  token: "the URL has no token. WebsocketProvider needs the option params: { token }, HocuspocusProvider a URL without a path",
  yWebsocket: "y-websocket is not served here: add it to COROOM_ROLES. HocuspocusProvider needs a URL without a path",
  hocuspocus: "hocuspocus is not served here: add it to COROOM_ROLES. WebsocketProvider needs a room and params: { token }",
};

/** Throws `StartError` if it cannot listen on the port. */
export async function ySockets(options: YSocketsOptions, admission: YClientAdmission): Promise<YSockets> {
  const http = createServer(lastRequestServer(() => true, options.headMsMax));
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: options.messageBytesMax,
    maxFragments: FRAGMENTS_MAX,
    autoPong: false, // A client that sends pings and reads nothing would fill the memory with the answers.
  });
  const answered = new WeakSet<WebSocket>();

  const connections = new Set<Socket>();
  http.on("connection", (connection) => {
    connections.add(connection);
    connection.on("close", () => connections.delete(connection));
  });
  http.on("upgrade", (request, stream, head) => {
    stream.on("error", () => stream.destroy()); // The connection broke.
    if (request.headers.upgrade === undefined) return turnAway(stream, "plain");
    const visitor = visitorOrReason(request);
    if (typeof visitor === "string") {
      admission.receiveRejected(visitor);
      return turnAway(stream, visitor);
    }
    server.handleUpgrade(request, stream, head, (socket) => {
      const ours = ySocketOf(socket);
      serve(socket, stream, "room" in visitor ? admission.enter(visitor, ours) : admission.enterHocuspocus(visitor, ours));
    });
  });

  /** The visitor, or the reason why it may not enter. */
  const visitorOrReason = (request: IncomingMessage): YSeat | YOrigin | YStranger | YRejection => {
    const { origin = "" } = request.headers;
    if (!isAllowedOrigin(origin, options.allowedOrigins)) {
      options.onForeignOrigin(origin);
      return "origin";
    }
    const visitor = visitorOf(request, options);
    return admission.mayEnter(visitor) ?? visitor;
  };
  /** `ws` itself closes a client that breaks the protocol or a limit, for example with code 1002, and would wait longer for its answer. */
  const receiveError = (socket: WebSocket, error: Error): void => {
    setTimeout(() => socket.terminate(), CLOSE_ANSWER_MS).unref();
    if ("code" in error && error.code === TOO_LARGE) admission.receiveTooLarge();
  };
  const serve = (socket: WebSocket, stream: Duplex, listener: YSocketListener): void => {
    answered.add(socket);
    // Runs before `ws` buffers incomplete messages. Pausing the socket of `ws` is needed, because it resumes the stream
    // itself.
    stream.prependListener("data", (bytes: Buffer) => listener.receiveBytes(bytes.byteLength) || socket.pause());
    socket.on("message", (data: Buffer) => listener.receiveMessage(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
    socket.on("pong", (data: Buffer) => {
      answered.add(socket);
      listener.receiveControlFrame(CONTROL_HEADER_BYTES + data.byteLength);
    });
    socket.on("ping", (data: Buffer) => {
      if (socket.bufferedAmount < PONG_UNREAD_BYTES_MAX) socket.pong(data);
      listener.receiveControlFrame(CONTROL_HEADER_BYTES + data.byteLength);
    });
    socket.on("error", (error) => receiveError(socket, error)); // "close" follows.
    socket.on("close", () => listener.receiveClosed());
  };

  const pinging = setInterval(() => {
    for (const socket of server.clients) {
      if (!answered.delete(socket)) socket.terminate();
      else socket.ping();
    }
  }, PING_MS);

  await new Promise<void>((resolve, reject) => {
    http.once("error", (cause) => reject(cannotListen(options, cause)));
    http.listen(options.port, options.host, resolve);
  });
  return {
    port: (http.address() as AddressInfo).port,
    close: async () => {
      clearInterval(pinging);
      for (const socket of server.clients) socket.close(Y_CLOSE.goingAway, "this server is stopping");
      const closed = new Promise((resolve) => http.close(resolve));
      await sleep(FAREWELL_MS);
      for (const connection of connections) connection.destroy(); // Also connections that have sent nothing yet.
      await closed;
    },
  };
}

function cannotListen({ host, port }: YSocketsOptions, cause: Error): StartError {
  const why = "the port is in use, or the address is not of this machine. Set COROOM_Y_PORT or COROOM_Y_HOST.";
  return new StartError(`cannot listen on ${host}:${port} for y-websocket and Hocuspocus clients: ${why}`, { cause });
}

function ySocketOf(socket: WebSocket): YWebSocket {
  let unreadCount = 0;
  return {
    send: (bytes) => {
      if (socket.readyState !== socket.OPEN) return;
      unreadCount += 1;
      socket.send(bytes, () => (unreadCount -= 1));
    },
    close: (code, reason) => {
      socket.close(code, cut(reason));
      setTimeout(() => socket.terminate(), CLOSE_ANSWER_MS).unref();
    },
    cut: (code, reason) => {
      socket.pause();
      socket.close(code, cut(reason));
      setTimeout(() => socket.terminate(), FAREWELL_MS).unref();
    },
    get waitingBytes() {
      const bytes = socket.readyState === socket.CLOSED ? 0 : socket.bufferedAmount;
      return bytes === 0 ? 0 : bytes + unreadCount * UNREAD_OVERHEAD_BYTES;
    },
  };
}

const REASON_BYTES_MAX = 123;

/** A close frame has no room for more. */
function cut(reason: string): string {
  if (Buffer.byteLength(reason) <= REASON_BYTES_MAX) return reason;
  const start = Buffer.from(reason)
    .subarray(0, REASON_BYTES_MAX - 3)
    .toString("utf8");
  return start.replace(/\uFFFD+$/, ""); // The cut may have split a character.
}

/** A room id may contain slashes and escaped characters. A Hocuspocus client names rooms and tokens later. */
function visitorOf(request: IncomingMessage, { addressHeader, protocols }: YSocketsOptions): YSeat | YOrigin | YStranger {
  const forwarded = addressHeader === "" ? undefined : request.headersDistinct[addressHeader]?.at(-1);
  const peer = request.socket.remoteAddress ?? "";
  const origin = { address: forwarded ?? peer, place: clientAddressOf(peer, forwarded ?? "") };
  if (!URL.canParse(request.url ?? "", BASE)) return { ...origin, remedy: REMEDIES.room };
  const url = new URL(request.url ?? "", BASE);
  const token = url.searchParams.get("token") ?? "";
  if (url.pathname === "/" && token === "") return protocols.includes("hocuspocus") ? origin : { ...origin, remedy: REMEDIES.hocuspocus };
  if (!protocols.includes("y-websocket")) return { ...origin, remedy: REMEDIES.yWebsocket };
  if (token === "") return { ...origin, remedy: REMEDIES.token };
  const room = parseRoomId(decoded(url.pathname.slice(1)));
  return room === undefined ? { ...origin, remedy: REMEDIES.room } : { ...origin, room, token };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return ""; // A single %: no room id.
  }
}

function turnAway(stream: Duplex, reason: YRejection | "plain"): void {
  const { status, message } = REFUSALS[reason];
  stream.once("finish", () => stream.destroy());
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "retry-after: 5",
    "connection: close",
    "content-type: text/plain",
    `content-length: ${Buffer.byteLength(message)}`,
  ];
  stream.end(`${head.join("\r\n")}\r\n\r\n${message}`);
}
