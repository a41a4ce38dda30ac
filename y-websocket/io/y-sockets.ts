/** Where y-websocket clients connect: `ws://host:port/room?token=…`, as its provider makes of a server, a room and `params`. */

import { createServer, type IncomingMessage, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

import { type WebSocket, WebSocketServer } from "ws";

import { clientAddressOf } from "../../shared/client-address.ts";
import { parseRoomId } from "../../shared/ids.ts";
import { isAllowedOrigin } from "../../shared/origins.ts";
import { StartError } from "../../shared/start-error.ts";
import type { TurnedAway, YDoor, YListener, YSeat, YSocket } from "../ports.ts";
import { Y_CLOSE } from "../y-line.ts";

export type YSocketsOptions = {
  readonly host: string;
  readonly port: number;
  readonly allowedOrigins: readonly string[];
  /** In lower case; empty where no balancer is trusted. */
  readonly addressHeader: string;
  readonly messageBytesMax: number;
};

export type YSockets = { readonly port: number; close(): Promise<void> };

/** One that answers no ping within that time is gone. */
const PING_MS = 30_000;
/** For one that is closed to answer that: it keeps its place as long. */
const CLOSE_ANSWER_MS = 5_000;
/** For close frames to be read. */
const FAREWELL_MS = 250;
/** As `ws` names it. */
const TOO_LARGE = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
const BASE = "ws://host";
const REFUSALS: Readonly<Record<TurnedAway, { readonly status: number; readonly message: string }>> = {
  full: { status: 503, message: "this server takes no more clients: try again, or another" },
  address: {
    status: 429,
    message: "too many clients from this address: close others, or try again later; behind a balancer set COROOM_CLIENT_ADDRESS_HEADER",
  },
  stopping: { status: 503, message: "this server stops: try again, or another" },
  origin: { status: 403, message: "pages of this origin may not connect: add it to COROOM_ALLOWED_ORIGINS" },
  request: {
    status: 400,
    message: "name a room and give a token: ws://host:port/room?token=…, with WebsocketProvider's option params: { token }",
  },
};

/** Throws where the port cannot be had. */
export async function ySockets(options: YSocketsOptions, door: YDoor): Promise<YSockets> {
  const http = createServer((_, response) => {
    response
      .writeHead(426, { "content-type": "text/plain" })
      .end("this is for clients of y-websocket: connect with its WebsocketProvider\n");
  });
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: options.messageBytesMax });
  const answered = new WeakSet<WebSocket>();

  const lines = new Set<Socket>();
  http.on("connection", (line) => {
    lines.add(line);
    line.on("close", () => lines.delete(line));
  });
  http.on("upgrade", (request, stream, head) => {
    stream.on("error", () => stream.destroy()); // The line broke: nobody is there to be told.
    const seat = seatOf(request, options);
    const reason = reasonAgainst(request, seat);
    if (seat === undefined || reason !== undefined) {
      door.receiveTurnedAway(reason ?? "request");
      return turnAway(stream, reason ?? "request");
    }
    server.handleUpgrade(request, stream, head, (socket) => serve(socket, stream, door.enter(seat, ySocketOf(socket))));
  });

  const reasonAgainst = (request: IncomingMessage, seat: YSeat | undefined): TurnedAway | undefined => {
    if (!isAllowedOrigin(request.headers.origin ?? "", options.allowedOrigins)) return "origin";
    return seat === undefined ? "request" : door.mayEnter(seat);
  };
  /** `ws` itself closes whoever says more than it may at once, with 1009, and would wait longer for the answer. */
  const receiveError = (socket: WebSocket, error: Error): void => {
    if (!("code" in error) || error.code !== TOO_LARGE) return;
    door.receiveTooLarge();
    setTimeout(() => socket.terminate(), CLOSE_ANSWER_MS).unref();
  };
  const serve = (socket: WebSocket, stream: Duplex, listener: YListener): void => {
    answered.add(socket);
    // Before `ws` has it, which keeps what is not whole. Its own pause holds: it resumes the stream as it likes.
    stream.prependListener("data", (bytes: Buffer) => listener.receiveBytes(bytes.byteLength) || socket.pause());
    socket.on("message", (data: Buffer) => listener.receive(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
    socket.on("pong", () => answered.add(socket));
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
      for (const socket of server.clients) socket.close(Y_CLOSE.goingAway, "this server stops");
      const closed = new Promise((resolve) => http.close(resolve));
      await sleep(FAREWELL_MS);
      for (const line of lines) line.destroy(); // Those, too, that have said nothing yet.
      await closed;
    },
  };
}

function cannotListen({ host, port }: YSocketsOptions, cause: Error): StartError {
  const why = "another process has it, or the address is not this machine's; set COROOM_Y_PORT or COROOM_Y_HOST";
  return new StartError(`port ${port} of ${host} cannot be listened on for y-websocket: ${why}`, { cause });
}

function ySocketOf(socket: WebSocket): YSocket {
  return {
    send: (bytes) => {
      if (socket.readyState === socket.OPEN) socket.send(bytes);
    },
    close: (code, reason) => {
      socket.close(code, cut(reason));
      setTimeout(() => socket.terminate(), CLOSE_ANSWER_MS).unref();
    },
    get waitingBytes() {
      return socket.bufferedAmount;
    },
  };
}

const REASON_BYTES_MAX = 123;

/** A close frame takes no more. */
function cut(reason: string): string {
  if (Buffer.byteLength(reason) <= REASON_BYTES_MAX) return reason;
  const start = Buffer.from(reason)
    .subarray(0, REASON_BYTES_MAX - 3)
    .toString("utf8");
  return start.replace(/\uFFFD+$/, ""); // Half a character, where it was cut.
}

/** The room may have slashes in it, and whatever a URL writes otherwise. */
function seatOf(request: IncomingMessage, { addressHeader }: YSocketsOptions): YSeat | undefined {
  if (!URL.canParse(request.url ?? "", BASE)) return undefined;
  const url = new URL(request.url ?? "", BASE);
  const room = parseRoomId(decoded(url.pathname.slice(1)));
  const token = url.searchParams.get("token") ?? "";
  if (room === undefined || token === "") return undefined;
  const forwarded = addressHeader === "" ? undefined : request.headersDistinct[addressHeader]?.at(-1);
  const peer = request.socket.remoteAddress ?? "";
  return { room, token, address: forwarded ?? peer, place: clientAddressOf(peer, forwarded ?? "") };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return ""; // A lone %: no room's name.
  }
}

function turnAway(stream: Duplex, reason: TurnedAway): void {
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
