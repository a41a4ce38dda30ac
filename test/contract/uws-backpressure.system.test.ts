/**
 * Checks, on the real library, how uWebSockets.js treats a subscriber that stops reading. The gateway requires this
 * behaviour when it publishes edits. The library's documentation does not define it, so each new version must pass this
 * test first.
 */

import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocket as Client } from "ws";

import { loadUws } from "../../gateway/io/sockets/load-uws.ts";
import { until } from "./real-nats.ts";

const TOPIC = "room";
const BACKPRESSURE_BYTES_MAX = 1024 ** 2;
const FRAME_BYTES = 64 * 1024;
/** More than the kernel buffers between two sockets of one process. */
const FRAMES = 1_000;

type Reader = { readonly client: Client; readonly got: number[]; closed: boolean };

const uws = loadUws();
let app: ReturnType<typeof uws.App>;
let port: number;
let readers: Reader[];
let closedByServer: number;

beforeEach(() => {
  readers = [];
  closedByServer = 0;
});
afterEach(() => {
  for (const { client } of readers) client.terminate();
  app.close();
});

async function serve(closeOnBackpressureLimit: boolean): Promise<void> {
  app = uws.App();
  app.ws("/*", {
    maxBackpressure: BACKPRESSURE_BYTES_MAX,
    closeOnBackpressureLimit,
    open: (socket) => void socket.subscribe(TOPIC),
    close: () => void (closedByServer += 1),
  });
  port = await new Promise((resolve) => app.listen("127.0.0.1", 0, (socket) => resolve(uws.us_socket_local_port(socket as never))));
}

async function enter(): Promise<Reader> {
  const reader: Reader = { client: new Client(`ws://127.0.0.1:${port}`), got: [], closed: false };
  readers.push(reader);
  reader.client.on("message", (frame: Buffer) => void reader.got.push(frame.readUInt32BE()));
  reader.client.on("close", () => void (reader.closed = true));
  reader.client.on("error", () => {});
  await until(() => reader.client.readyState === Client.OPEN, "the socket is open");
  return reader;
}

/** Each frame begins with its number. The event loop turns once in between, so that readers can read. */
async function publishAll(): Promise<void> {
  for (let number = 0; number < FRAMES; number++) {
    const frame = Buffer.alloc(FRAME_BYTES);
    frame.writeUInt32BE(number);
    app.publish(TOPIC, frame, true);
    await new Promise(setImmediate);
  }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

test("[UWS1] above maxBackpressure a publication is dropped for that subscriber, which is not informed and continues after the gap", async () => {
  await serve(false);
  const [stalled, other] = [await enter(), await enter()];
  stalled.client.pause();
  await publishAll();
  stalled.client.resume();
  await until(() => other.got.length === FRAMES, "the other subscriber has all frames");
  const last = Buffer.alloc(FRAME_BYTES);
  last.writeUInt32BE(FRAMES);
  await until(() => (app.publish(TOPIC, last, true), stalled.got.at(-1) === FRAMES), "the stalled reader has the last frames");

  expect(other.got.slice(0, FRAMES)).toEqual(numbers(FRAMES));
  expect(stalled.got.filter((number) => number < FRAMES).length).toBeLessThan(FRAMES);
  expect([stalled.closed, closedByServer]).toEqual([false, 0]);
});

test("[UWS2] with closeOnBackpressureLimit the subscriber is closed instead, and has an unbroken beginning of the published frames", async () => {
  await serve(true);
  const [stalled, other] = [await enter(), await enter()];
  stalled.client.pause();
  await publishAll();
  await until(() => closedByServer === 1, "the stalled reader is closed");
  stalled.client.resume();
  await until(() => stalled.closed && other.got.length === FRAMES, "the reader has noticed, and the other has all frames");

  expect(other.got).toEqual(numbers(FRAMES));
  expect(stalled.got).toEqual(numbers(stalled.got.length));
  expect(stalled.got.length).toBeLessThan(FRAMES);
});
