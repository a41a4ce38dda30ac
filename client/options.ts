/** Checks the options that an application passes. JavaScript callers may pass anything, so each error describes the expected value. */

import { assert } from "../shared/assert.ts";
import { hash32 } from "../shared/collections/hash.ts";
import { parseRoomId, ROOM_ID_RULE, type RoomId } from "../shared/ids.ts";
import { BOARD_ROLES } from "../shared/wire/boards.ts";

/** `needed`: describes the required options. */
export function assertOptions(options: unknown, needed: string): void {
  assert(typeof options === "object" && options !== null, `options are missing: pass an object with ${needed}`);
}

type GivenRoomOptions = { readonly [Option in "room" | "url" | "connection" | "inFlightEditsMax" | "store"]?: unknown };

/** The id of the room. */
export function checkedRoomOf(options: GivenRoomOptions): RoomId {
  assertOptions(options, "url, token and room");
  const room = typeof options.room === "string" ? parseRoomId(options.room) : undefined;
  assert(room !== undefined, `\`room\` must be the room's id: ${ROOM_ID_RULE}`);
  assertConnectionSource(options);
  assertStore(options.store);
  assertInFlight(options.inFlightEditsMax);
  return room;
}

/** A room has its own connection (url and token), or shares one. */
function assertConnectionSource({ url, connection }: GivenRoomOptions): void {
  if (connection === undefined)
    return assert(url !== undefined, "pass `url` and `token`, or a `connection` that is shared with other rooms");
  const { enter, join } = (connection ?? {}) as Record<string, unknown>;
  assert(typeof enter === "function" && typeof join === "function", "`connection` must be a CoroomConnection");
}

/** A limit of 0 would send nothing. */
function assertInFlight(editsMax: unknown): void {
  assert(
    editsMax === undefined || (Number.isSafeInteger(editsMax) && Number(editsMax) > 0),
    "`inFlightEditsMax` must be a whole number from 1: the maximum number of unacknowledged edits",
  );
}

function assertStore(store: unknown): void {
  const { persistence } = (store ?? {}) as Record<string, unknown>;
  assert(
    store === undefined || typeof persistence === "function",
    "`store` must be a DeviceStore: pass indexedDbStore({ owner }) of @coroom/client/indexeddb, or new DeviceStore(store) of @coroom/client/store",
  );
}

/** `what`: what the application asked for. A room that is left permanently would do nothing, without a sign. */
export function assertNotDestroyed(isDestroyed: boolean, what: string): void {
  assert(!isDestroyed, `cannot ${what} after destroy(): the room is left permanently. Create a new RoomConnection or provider.`);
}

/** A room whose parts an entry point gives, for example its broadcasts. */
export function assertRoom(room: unknown): void {
  const { part } = (room ?? {}) as Record<string, unknown>;
  assert(typeof part === "function", "pass a room: a CoroomProvider or a RoomConnection of @coroom/client");
}

/**
 * Checks the type's name, because a Uint8Array of another frame or test page is no instance of the class known here.
 */
export function assertBytes(payload: unknown): void {
  const { [Symbol.toStringTag]: type } = (payload ?? {}) as Record<symbol, unknown>;
  assert(type === "Uint8Array", "`payload` must be a Uint8Array. Convert a string with new TextEncoder().encode(text).");
}

/** Which board, and how much of it. */
export function assertBoard(window: unknown, role: string, shown: number): void {
  assert(typeof window === "string", "window must be a text, such as last-week, day or 2026-W27");
  assert(role in BOARD_ROLES, `role must be one of ${Object.keys(BOARD_ROLES).join(", ")}`);
  assert(Number.isSafeInteger(shown) && shown > 0, "shown must be a whole number from 1: the number of places");
}

/** The server's URL for sockets and for HTTP. */
export type ServerAddress = { readonly socket: string; readonly http: string };

const SCHEMES: Readonly<Record<string, { socket: string; http: string }>> = {
  "ws:": { socket: "ws:", http: "http:" },
  "http:": { socket: "ws:", http: "http:" },
  "wss:": { socket: "wss:", http: "https:" },
  "https:": { socket: "wss:", http: "https:" },
};

/** Accepts `ws://host:port`, `wss:`, `http:` and `https:`. A path is kept, for a server behind a proxy. */
export function serverAddressOf(url: string): ServerAddress {
  const parsed = parsedUrl(url);
  const schemes = parsed && SCHEMES[parsed.protocol];
  assert(parsed !== undefined && schemes !== undefined, `url must look like ws://host:port or wss://host, not ${JSON.stringify(url)}`);
  const rest = `//${parsed.host}${parsed.pathname.replace(/\/+$/, "")}`;
  return { socket: `${schemes.socket}${rest}/`, http: `${schemes.http}${rest}` };
}

/** React Native has no `URL.canParse`. */
function parsedUrl(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined; // A TypeError.
  }
}

/** Bits of the routing key: enough to spread rooms, and too few to identify the room. */
const ROUTE_BITS = 16;

/**
 * The socket's URL with a routing key, by which a balancer sends clients of a room to the same gateway. `detour`: 0, or
 * the number of another gateway to try, so that members of a room meet there too.
 */
export function socketUrl({ socket }: ServerAddress, room: string | undefined, detour: number): string {
  if (room === undefined) return socket;
  const key = (hash32(room) >>> (32 - ROUTE_BITS)).toString(16).padStart(ROUTE_BITS / 4, "0");
  return `${socket}?route=${key}${detour === 0 ? "" : `-${detour}`}`;
}

export function snapshotUrl({ http }: Pick<ServerAddress, "http">, room: string): string {
  return `${http}/v1/rooms/${encodeURIComponent(room)}/snapshot`;
}
