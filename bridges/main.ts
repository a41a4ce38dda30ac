/**
 * Starts the bridge for clients of y-websocket and Hocuspocus. For a gateway, each of them is a client of the SDK, with
 * the same guarantees and limits.
 */

import { decodeJwt } from "jose";
import type { Registry } from "prom-client";
import * as Y from "yjs";

import { parseTenantId, roomKey, type TenantId } from "../shared/ids.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import { ForeignOrigins } from "../shared/process/foreign-origins.ts";
import type { Log } from "../shared/process/log.ts";
import { fetchSnapshot } from "../client/io/fetch-snapshot.ts";
import { openSocketWith } from "../client/io/node-socket.ts";
import { systemChance, systemClock as clientClock } from "../client/io/system.ts";
import type { ClientWorld } from "../client/ports.ts";
import { RoomAwareness } from "../client/presence/awareness.ts";
import { RoomConnection } from "../client/room/room-connection-host.ts";
import type { RoomConnectionOptions } from "../client/room/room-events.ts";
import { yjsEdits } from "../client/yjs/yjs-edits.ts";
import { AnswerTurns } from "./answer-turns.ts";
import { type AdmissionDeps, YAdmission } from "./admission.ts";
import { addressWarning, type EdgeConfig, refuseUnsafe, type YWebsocketConfig } from "./config.ts";
import { EarlyMessagesBudget } from "./held-messages.ts";
import { type YProtocol, ySockets } from "./io/y-sockets.ts";
import { yjsThreads } from "./io/yjs-threads.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { Places } from "./places.ts";
import { SharedRooms } from "./room-copy.ts";
import type { YWebSocket } from "./ports.ts";
import { type ReaderOwner, UnreadData } from "./unread-data.ts";
import { YClient, type YRoom } from "./y-client.ts";
import { Y_CLOSE } from "./y-connection.ts";

export type RunningYWebsocket = Running & { readonly port: number };
const TOO_MUCH_UNREAD = "clients do not take what they are sent: connect again later";
const DEFAULT_TENANT = "default" as TenantId;
/** No tenant has this name. The gateway refuses the token. */
const REFUSED_TENANT = "" as TenantId;

type Deps = { readonly log: Log; readonly registry: Registry; readonly protocols?: readonly YProtocol[] };

/** Throws `StartError` if the settings are unsafe or the port is in use. */
export async function startBridges(
  config: YWebsocketConfig & EdgeConfig,
  { log, registry, protocols = ["y-websocket", "hocuspocus"] }: Deps,
): Promise<RunningYWebsocket> {
  refuseUnsafe(config);
  const warning = addressWarning(config);
  if (warning !== undefined) log.warn({}, warning);
  const { yGatewayUrl: url, clientAddressHeader: addressHeader } = config;
  const unread = new UnreadData<YWebSocket>(config.yUnreadBytesMax, (heaviest) => {
    metrics.closes.inc({ code: String(Y_CLOSE.overloaded) });
    heaviest.cut(Y_CLOSE.overloaded, TOO_MUCH_UNREAD);
  });
  const metrics = yWebsocketMetrics(registry, () => unread.bytes);
  metrics.unreadBytesMax.set(config.yUnreadBytesMax);
  const turns = new AnswerTurns(config.yUnreadBytesMax / 2, clock);
  const budget = new EarlyMessagesBudget(config.yHeldBytesMax);
  const threads = yjsThreads(log);
  const rooms = new SharedRooms(config, {
    workOf: (room) => threads.workOf(room),
    reportLeftOut: (why) => {
      metrics.leftOut.inc();
      log.warn({ why }, "an edit of a room is left out for clients of the bridge, as in every document");
    },
    reportRooms: (count) => metrics.rooms.set(count),
  });

  const newClient: AdmissionDeps["newClient"] = ({ room, token, address }, socket, dialect, receiveAccepted) => {
    const owner = ownerOf(token);
    const key = roomKey(owner.tenant, room);
    const world = worldOf(addressHeader === "" ? {} : { [addressHeader]: address }, log);
    return new YClient(socket, config, {
      openRoom: (yjsClient, since) => openRoom({ url, token, room, since, format: yjsEdits }, yjsClient, world),
      takeCopy: () => rooms.take(key),
      receiveAccepted: () => receiveAccepted(owner),
      dialect,
      budget,
      clock,
      warn: (facts, sentence) => log.warn(facts, sentence),
      metrics,
      work: threads.workOf(key),
      turns,
      owner,
    });
  };
  const { yUnfinishedBytesMax: unfinishedBytesMax } = config;
  const hocuspocus = { ...config, budget, clock };
  const admission = new YAdmission({ places: new Places(config), metrics, hocuspocus, newClient, unfinishedBytesMax, unread });
  const { yHost: host, yPort: port, allowedOrigins, yMessageBytesMax: messageBytesMax, yHelloMsMax: headMsMax } = config;
  const foreignOrigins = new ForeignOrigins(log);
  const onForeignOrigin = (origin: string): void => foreignOrigins.receive(origin, clock.now());
  const edge = { host, port, allowedOrigins, addressHeader, messageBytesMax, headMsMax, protocols, onForeignOrigin };
  const sockets = await ySockets(edge, admission);
  log.info({ port: sockets.port, gateway: url, protocols }, "serving clients of other protocols");

  const stop = async (): Promise<void> => {
    admission.close();
    await sockets.close();
    await new Promise<void>((resolve) => admission.whenEmpty(resolve));
    await threads.stop();
  };
  return { port: sockets.port, stop: stopOnce(stop) };
}

function openRoom(options: RoomConnectionOptions, yjsClient: number | undefined, world: ClientWorld): YRoom {
  const room = new RoomConnection({ ...options, connect: false }, world);
  const doc = new Y.Doc(); // The document stays empty: the awareness uses only its client id.
  if (yjsClient !== undefined) doc.clientID = yjsClient;
  const awareness = new RoomAwareness(doc, room, world);
  room.on("presence", (change) => awareness.receivePresence(change, room));
  room.connect();
  return Object.assign(room, { awareness });
}

/** The gateway verifies the token before the client's room is joined. The client receives nothing of a copy before that. */
function ownerOf(token: string): ReaderOwner {
  try {
    const { tenant, sub: user = "" } = decodeJwt(token);
    return { tenant: typeof tenant === "string" ? (parseTenantId(tenant) ?? REFUSED_TENANT) : DEFAULT_TENANT, user };
  } catch {
    return { tenant: REFUSED_TENANT, user: "" }; // No token.
  }
}

/** `headers`: give the gateway the client's address. */
function worldOf(headers: Readonly<Record<string, string>>, log: Log): ClientWorld {
  return {
    clock: clientClock,
    chance: systemChance,
    openSocket: (...given) => openSocketWith(headers, ...given),
    fetchSnapshot,
    reportError: (cause) => log.error({ cause }, "cannot serve a client of the bridge"),
  };
}
