/**
 * A WebSocket client with little overhead, because the load shares the machine with the measured servers. It uses binary
 * frames only, no extensions, a mask of zeros, one read buffer for all sockets, and one write for all frames of a turn
 * of the event loop.
 */

import { connect, type Socket } from "node:net";

export interface LoadSocket {
  send(frame: Uint8Array): void;
  close(): void;
  /** Stops reading: data fills the kernel's buffers and then the server's. */
  pause(): void;
  resume(): void;
}

type LoadSocketListener = {
  /** `frame` is borrowed for the call. */
  receiveFrame(frame: Uint8Array): void;
  /** The server closed the connection. */
  receiveEnd(reason: string): void;
};

const OPCODE = { binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FIN = 0x80;
const MASKED = 0x80;
const EMPTY = Buffer.alloc(0);
const sharedBuffer = Buffer.allocUnsafe(256 * 1024); // Each read is consumed before the next.

export function openSocket(url: URL, listener: LoadSocketListener): Promise<LoadSocket> {
  return new Promise((resolve, reject) => {
    const frames = new FrameReader();
    let answer: Buffer | undefined = EMPTY;

    const receiveBytes = (bytes: Buffer): void => {
      if (answer === undefined) return frames.read(bytes, receiveFrame);
      answer = Buffer.concat([answer, bytes]);
      const end = answer.indexOf(HEAD_END);
      if (end === -1) return;
      if (!answer.toString("latin1", 0, end).startsWith("HTTP/1.1 101 "))
        return void socket.destroy(new Error(`${url.href} refused the upgrade: ${answer.toString("latin1", 0, end)}`));
      const rest = answer.subarray(end + HEAD_END.length);
      answer = undefined;
      resolve(loadSocket);
      frames.read(rest, receiveFrame);
    };
    const receiveFrame = (opcode: number, payload: Buffer): void => {
      if (opcode === OPCODE.binary) listener.receiveFrame(payload);
      else if (opcode === OPCODE.ping) writer.write(OPCODE.pong, payload);
      else if (opcode === OPCODE.close) end(`closed with ${payload.length >= 2 ? payload.readUInt16BE() : "no code"}`);
    };
    let closed = false;
    /** Called once: a server first sends a close code, and the connection ends a moment later. */
    const end = (reason: string): void => {
      if (closed) return;
      closed = true;
      if (answer === undefined) listener.receiveEnd(reason);
      else reject(new Error(`${url.href}: ${reason}`));
    };

    const onread = { buffer: sharedBuffer, callback: (count: number) => (receiveBytes(sharedBuffer.subarray(0, count)), true) };
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true, onread });
    socket.once("connect", () => socket.write(upgradeRequest(url)));
    socket.once("error", (error) => end(error.message));
    socket.once("close", () => end("cut off"));
    const writer = new FrameWriter(socket);
    const loadSocket: LoadSocket = {
      send: (frame) => writer.write(OPCODE.binary, frame),
      pause: () => void socket.pause(),
      resume: () => void socket.resume(),
      close: () => {
        closed = true;
        writer.write(OPCODE.close, EMPTY);
      },
    };
  });
}

const HEAD_END = "\r\n\r\n";

function upgradeRequest(url: URL): string {
  return [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`,
    "",
    "",
  ].join("\r\n");
}

/** `short`: the length field in the second byte. */
function headerBytes(short: number): number {
  if (short < 126) return 2;
  return short === 126 ? 4 : 10;
}

function lengthBehind(bytes: Buffer, at: number, short: number): number {
  return short === 126 ? bytes.readUInt16BE(at) : Number(bytes.readBigUInt64BE(at));
}

/** Splits the received bytes into frames. A server does not mask, and does not fragment frames of these sizes. */
class FrameReader {
  #kept = EMPTY;

  read(chunk: Buffer, receive: (opcode: number, payload: Buffer) => void): void {
    const bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    let at = 0;
    while (bytes.length - at >= 2) {
      const short = bytes[at + 1]!;
      const header = headerBytes(short);
      if (bytes.length - at < header) break;
      const length = short < 126 ? short : lengthBehind(bytes, at + 2, short);
      const end = at + header + length;
      if (bytes.length < end) break;
      receive(bytes[at]! & 0x0f, bytes.subarray(at + header, end));
      at = end;
    }
    this.#kept = at === bytes.length ? EMPTY : Buffer.from(bytes.subarray(at));
  }
}

class FrameWriter {
  readonly #socket: Socket;
  #pending: Uint8Array[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(opcode: number, payload: Uint8Array): void {
    if (this.#pending.length === 0) queueMicrotask(() => this.#flush());
    this.#pending.push(header(opcode, payload.byteLength), payload);
  }

  #flush(): void {
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }
}

const MASK_BYTES = 4;

function header(opcode: number, length: number): Uint8Array {
  const short = length < 126;
  const bytes = Buffer.alloc((short ? 2 : 4) + MASK_BYTES);
  bytes[0] = FIN | opcode;
  bytes[1] = MASKED | (short ? length : 126);
  if (!short) bytes.writeUInt16BE(length, 2);
  return bytes;
}
