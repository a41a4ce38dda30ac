/** A minimal client for system tests: sends frames, stores received ones, and waits for what a test expects. */

import { WebSocket } from "ws";

import { type ClientKey, type Position, type RoomId, type Seq, START } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { type ClientFrame, type Counter, type Frame, PROTOCOL_VERSION, type ServerFrame } from "../../shared/wire/frames.ts";
import { messagesOf } from "../../shared/wire/parts.ts";

const WAIT_MS_MAX = 30_000;
const FLOOD_AT_ONCE = 10;

type Of<Type extends Frame["type"]> = Frame & { type: Type };

export class WireClient {
  readonly #socket: WebSocket;
  readonly received: Frame[] = [];
  readonly #watchers = new Set<() => void>();
  #taken = 0;
  #lastRequest = 0;
  closed: { code: number; reason: string } | undefined;
  /** The reason of a broken connection. */
  #error: Error | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      const frame = decodeFrame(new Uint8Array(data));
      if (frame === undefined || frame.type === "unknown") throw new Error(`an undecodable frame came: ${data.toString("hex")}`);
      this.received.push(frame);
      this.#notify();
    });
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
      this.#notify();
    });
    socket.on("error", (error) => (this.#error = error)); // A close follows.
  }

  /** Rejects with the HTTP status if the gateway rejects the connection. `ca`: trusted certificates for TLS. */
  static open(url: string, headers: Record<string, string> = {}, ca?: string): Promise<WireClient> {
    const socket = new WebSocket(url, { headers, perMessageDeflate: false, ...(ca === undefined ? {} : { ca }) });
    const client = new WireClient(socket);
    return new Promise((resolve, reject) => {
      socket.once("open", () => resolve(client));
      socket.once("unexpected-response", (_request, response) => reject(new Error(`HTTP ${response.statusCode}`)));
      socket.once("error", reject);
    });
  }

  /** Connects, sends HELLO and waits for WELCOME. */
  static async greet(url: string, token: string): Promise<WireClient> {
    const client = await WireClient.open(url);
    client.send({ type: "hello", version: PROTOCOL_VERSION, token, agent: "test" });
    await client.next("welcome");
    return client;
  }

  send(frame: ClientFrame): void {
    const limits = this.received.find((received) => received.type === "welcome")?.limits;
    const bytes = encodeFrame(frame);
    for (const message of limits === undefined ? [bytes] : messagesOf(bytes, limits)) this.sendBytes(message);
  }

  sendBytes(bytes: Uint8Array): void {
    this.#socket.send(bytes);
  }

  /** The first or the next bytes of an endless message. */
  sendUnfinished(bytes: Uint8Array): void {
    this.#socket.send(bytes, { fin: false });
  }

  /** Reads nothing for this time after each frame. */
  readSlowly(pauseMs: number): void {
    this.#socket.on("message", () => {
      this.#socket.pause();
      setTimeout(() => this.#socket.resume(), pauseMs);
    });
  }

  sendText(text: string): void {
    this.#socket.send(text);
  }

  async join(room: string, clientKey: string, position: Position = START): Promise<Of<"joined">> {
    this.#lastRequest += 1;
    this.send({ type: "join", request: this.#lastRequest, room: room as RoomId, clientKey: clientKey as ClientKey, position });
    return this.next("joined");
  }

  edit(channel: number, counter: Counter, payload: string, ackedThrough = 0): void {
    this.send({ type: "edit", channel, counter, ackedThrough, parentSeq: 0 as Seq, payload: new TextEncoder().encode(payload) });
  }

  /** The next frame of this type; frames before it are skipped. */
  async next<Type extends ServerFrame["type"]>(type: Type): Promise<Of<Type>> {
    const find = (): number => this.received.findIndex((frame, index) => index >= this.#taken && frame.type === type);
    await this.until(() => find() >= 0, `a frame of type ${type}`);
    const index = find();
    this.#taken = index + 1;
    return this.received[index] as Of<Type>;
  }

  /** Sends this number of edits, the first ones of the client, a few at a time. Resolves when all are acknowledged. */
  async flood(channel: number, edits: number, payload: string): Promise<void> {
    for (let sent = 0; sent < edits;) {
      const before = sent;
      for (; sent < Math.min(before + FLOOD_AT_ONCE, edits); sent++) this.edit(channel, sent + 1, payload, before);
      await this.until(() => this.#acked() === sent, `the ack of edit ${sent}`);
    }
  }

  #acked(): Counter {
    const ack = this.received.findLast((frame) => frame.type === "ack");
    return ack?.type === "ack" ? ack.counter + ack.count - 1 : 0;
  }

  /** Payloads of the committed frames, by seq. */
  committed(): Map<Seq, string> {
    const edits = new Map<Seq, string>();
    for (const frame of this.received) {
      if (frame.type !== "committed") continue;
      frame.edits.edits.forEach((edit, index) => edits.set((frame.edits.firstSeq + index) as Seq, new TextDecoder().decode(edit.payload)));
    }
    return edits;
  }

  async until(holds: () => boolean, what: string): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#watchers.delete(check);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(check);
        reject(
          new Error(
            `${what} did not come; there came: ${this.received.map((frame) => frame.type).join(", ")}${this.closed === undefined ? "" : `, closed ${this.closed.code}`}`,
            { cause: this.#error },
          ),
        );
      }, WAIT_MS_MAX);
      this.#watchers.add(check);
    });
  }

  /** Waits for the close. */
  async end(): Promise<{ code: number; reason: string }> {
    await this.until(() => this.closed !== undefined, "a close");
    return this.closed!;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.terminate();
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher();
  }
}
