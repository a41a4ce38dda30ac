/**
 * On how many gateways the members of a room are, with the routing key and without. First with HAProxy and
 * `deploy/balancer/haproxy.cfg` before listeners that only accept WebSockets, and then for the full size, computed with the
 * model of the balancer. The run fails if HAProxy and the model disagree about any connection with a key.
 */

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { startBalancer } from "../deploy/balancer/start-balancer.ts";
import { BALANCE_FACTOR, type Balancing, BalancerModel } from "./balancer-model.ts";
import { defineExperiment, positiveIntegers } from "./experiment.ts";
import {
  figuresOfRooms,
  LARGE_ROOM,
  memberOrder,
  type RoomSeats,
  routingFigures,
  routingKeyOf,
  seatRooms,
  sizesOf,
} from "./gateways-of-rooms.ts";

const STOP_MS_MAX = 5_000;
const ANSWER_MS_MAX = 20_000;
const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** HAProxy needs two descriptors for each connection, and some for itself. */
const CONNECTIONS_MAX = 8_000;
const BALANCINGS: readonly Balancing[] = ["by key", "by load"];
/** Rooms of each size before HAProxy: 3,600 connections. */
const REAL_ROOMS = [4, 30, LARGE_ROOM].flatMap((size, kind) => Array.from({ length: [100, 40, 2][kind]! }, () => size));

type RealRouting = {
  readonly seats: RoomSeats;
  /** Connections for which HAProxy chose another gateway than the model. */
  readonly differences: number;
};

/** All members of all rooms connect one after the other in random order, and stay. */
export async function measureRouting(sizes: readonly number[], balancing: Balancing, gateways: number): Promise<RealRouting> {
  const folder = mkdtempSync(join(tmpdir(), "coroom-routing-"));
  const listeners = await Promise.all(Array.from({ length: gateways }, (_, gateway) => listen(gateway)));
  const clients: Socket[] = [];
  const balancer = await startBalancer(
    listeners.map(({ server }) => `127.0.0.1:${(server.address() as AddressInfo).port}`),
    folder,
    CONNECTIONS_MAX,
  );
  try {
    const model = new BalancerModel({ gateways, balanceFactor: BALANCE_FACTOR });
    const seats = sizes.map(() => new Map<number, number>());
    let differences = 0;
    for (const room of memberOrder(sizes)) {
      const key = routingKeyOf(room);
      const { gateway, socket } = await connect(balancer.url, balancing === "by key" ? `/?route=${key}` : "/");
      clients.push(socket);
      seats[room]!.set(gateway, (seats[room]!.get(gateway) ?? 0) + 1);
      if (model.connect(balancing, key) !== gateway) differences++;
    }
    return { seats, differences };
  } finally {
    for (const socket of clients) socket.destroy();
    await balancer.process.stop(STOP_MS_MAX);
    for (const { server, sockets } of listeners) {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Takes the place of a gateway: answers health checks and names itself in the answer to an upgrade. */
async function listen(gateway: number): Promise<{ readonly server: Server; readonly sockets: ReadonlySet<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => void response.end());
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined); // The balancer ends with the run.
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("upgrade", ({ headers }, socket) => {
    const accept = createHash("sha1").update(`${headers["sec-websocket-key"]}${WEBSOCKET_GUID}`).digest("base64");
    const answer = ["connection: upgrade", "upgrade: websocket", `sec-websocket-accept: ${accept}`, `x-gateway: ${gateway}`];
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${answer.join("\r\n")}\r\n\r\n`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, sockets };
}

async function connect(url: string, path: string): Promise<{ readonly gateway: number; readonly socket: Socket }> {
  const key = randomBytes(16).toString("base64");
  const headers = { "connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": key };
  const asked = request(url.replace("ws:", "http:") + path, { headers, timeout: ANSWER_MS_MAX }).end();
  asked.on("timeout", () => asked.destroy(new Error(`the balancer did not answer within ${ANSWER_MS_MAX} ms`)));
  asked.on("response", ({ statusCode }) => asked.destroy(new Error(`the balancer answered ${statusCode} instead of 101`)));
  const [response, socket] = (await once(asked, "upgrade")) as [{ headers: Record<string, string> }, Socket];
  socket.on("error", () => undefined); // The balancer ends with the run.
  return { gateway: Number(response.headers["x-gateway"]), socket };
}

export const routing = defineExperiment({
  name: "routing",
  summary: "gateways that the members of a room use, with the routing key and without, before HAProxy and computed; one minute",
  settings: {
    realGateways: { parse: wholeNumber, fallback: 8, meaning: "listeners behind HAProxy; 0: only the computation" },
    gateways: { parse: positiveIntegers, fallback: [8, 30] as readonly number[], meaning: "gateways of the computed full size" },
    rooms: { parse: positiveInteger, fallback: 100_000, meaning: "rooms of the computed full size, the largest 0.1% of 1,000" },
    roomServers: { parse: positiveInteger, fallback: 96, meaning: "room servers of the computed full size" },
  },
  run: async ({ realGateways, gateways, rooms, roomServers }, print) => {
    if (realGateways > 0) {
      print(`\nHAProxy before ${realGateways} listeners, ${REAL_ROOMS.length} rooms: gateways per room, mean and p99`);
      for (const balancing of BALANCINGS) {
        const { seats, differences } = await measureRouting(REAL_ROOMS, balancing, realGateways);
        if (balancing === "by key" && differences > 0) throw new Error(`the model of the balancer is wrong for ${differences} connections`);
        for (const line of figuresOfRooms(seats)) print(`  ${balancing.padEnd(8)} ${line}`);
      }
    }
    const sizes = sizesOf({ rooms, median: 3, p95: 30, largeRooms: Math.ceil(rooms / 1_000) });
    const connections = sizes.reduce((sum, size) => sum + size, 0);
    for (const count of gateways) {
      print(`\ncomputed: ${rooms} rooms with ${connections} connections on ${count} gateways, owned by ${roomServers} room servers`);
      for (const balancing of BALANCINGS) {
        const seats = seatRooms(sizes, balancing, { gateways: count, balanceFactor: BALANCE_FACTOR });
        for (const line of figuresOfRooms(seats)) print(`  ${balancing.padEnd(8)} ${line}`);
        const { copies, deltas, messages, busiest } = routingFigures(seats, roomServers);
        print(
          `  ${balancing.padEnd(8)} copies of an edit ${copies.toFixed(1)}, deltas per tick ${deltas} in ${messages} messages; the fullest gateway has ${busiest.toFixed(2)} of the average`,
        );
      }
    }
  },
});
