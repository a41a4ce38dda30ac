/**
 * Branded identifiers. Each is checked once, where it enters, so that no dot, star or space from a client reaches a
 * NATS subject, and rooms of different tenants are never confused.
 */

declare const brand: unique symbol;
/**
 * A value with a name, so that TypeScript accepts no other kind of value in its place. At run time it is the value itself: a
 * string or a number. To pass a value of your own, assert it: `"ada" as UserId`.
 */
export type Brand<Base, Name extends string> = Base & { readonly [brand]: Name };

export type TenantId = Brand<string, "TenantId">;
/**
 * A room's name within its tenant: 1 to 128 characters, no control characters; not `.` or `..`, which vanish from a
 * URL's path.
 */
export type RoomId = Brand<string, "RoomId">;
/** A room's name inside the system: `<tenant>.<room>`, both subject-safe tokens. */
export type RoomKey = Brand<string, "RoomKey">;
/** A user within a tenant, as the token names them: 1 to 128 characters, no control characters. */
export type UserId = Brand<string, "UserId">;
/** The random secret name of a tab or process: 8 to 32 URL-safe characters. Never sent to other clients. */
export type ClientKey = Brand<string, "ClientKey">;
/**
 * A writer of edits: 16 URL-safe characters that a gateway derives from tenant, user and client key, so that no user
 * can use another user's acks or numbering.
 */
export type ClientId = Brand<string, "ClientId">;
/** One run of one gateway process; a restart is another gateway. */
export type GatewayId = Brand<string, "GatewayId">;
/** One run of one room server process; a restart is another server. */
export type ServerId = Brand<string, "ServerId">;
/** Maximum characters of a server's host, zone and pool. Other processes ignore the heartbeats of a server with a longer one. */
export const LABEL_LENGTH_MAX = 64;
/** The ownership term of a room, which increases with every new owner. 0: none yet. */
export type Epoch = Brand<number, "Epoch">;
/** An edit's number in its room's order, from 1, without gaps. 0: before the first edit. */
export type Seq = Brand<number, "Seq">;
/** Milliseconds on one process's steady clock, for durations and deadlines. Other processes cannot use the value. */
export type Millis = Brand<number, "Millis">;
/** Milliseconds since the Unix epoch: a date. The clock may have been set since. */
export type UnixMillis = Brand<number, "UnixMillis">;

/** An edit's author. Dedupe uses the client; the user is kept for history. */
export type Author = { readonly user: UserId; readonly client: ClientId };
/**
 * A position in a room's log. A seq is never sent without its epoch: after a log was lost or rolled back, the same seq
 * could belong to different edits.
 */
export type Position = {
  /** Number of the ownership under which the edit was stored. It grows, and may have gaps. */
  readonly epoch: Epoch;
  /** Number of the edit in the room, from 1. 0: before the first edit. */
  readonly seq: Seq;
};

export const START: Position = { epoch: 0 as Epoch, seq: 0 as Seq };

const SAFE_TOKEN = /^[A-Za-z0-9_-]{1,64}$/;
const CLIENT_KEY = /^[A-Za-z0-9_-]{8,32}$/;
const CLIENT_ID = /^[A-Za-z0-9_-]{16}$/;
const ROOM_KEY = /^[A-Za-z0-9_-]{1,64}\.(?:[A-Za-z0-9_-]|=[0-9a-f]{2}){1,512}$/;
const CONTROL = /\p{Cc}/u;
/** Half of a character, which UTF-8 cannot represent. React Native has no `isWellFormed`. */
export const LONE_SURROGATE = /[\ud800-\udfff]/u;
/** For errors about a text that `parseRoomId` does not accept. */
export const ROOM_ID_RULE = "a room id has 1 to 128 characters, no control characters, and is not `.` or `..`";

/** For errors about a text that `parseTenantId` does not accept. */
export const TENANT_ID_RULE = "a tenant has 1 to 64 letters, digits, _ and -";

/** For errors about a text that `parseUserId` does not accept. */
export const USER_ID_RULE = "a user is 1 to 128 characters without control characters";

export function parseTenantId(text: string): TenantId | undefined {
  return SAFE_TOKEN.test(text) ? (text as TenantId) : undefined;
}

export function parseRoomId(text: string): RoomId | undefined {
  return text.length >= 1 && text.length <= 128 && !LONE_SURROGATE.test(text) && !CONTROL.test(text) && !/^\.\.?$/.test(text)
    ? (text as RoomId)
    : undefined;
}

export function parseUserId(text: string): UserId | undefined {
  return text.length >= 1 && text.length <= 128 && !LONE_SURROGATE.test(text) && !CONTROL.test(text) ? (text as UserId) : undefined;
}

export function parseClientId(text: string): ClientId | undefined {
  return CLIENT_ID.test(text) ? (text as ClientId) : undefined;
}

export function parseClientKey(text: string): ClientKey | undefined {
  return CLIENT_KEY.test(text) ? (text as ClientKey) : undefined;
}

export function parseGatewayId(text: string): GatewayId | undefined {
  return SAFE_TOKEN.test(text) ? (text as GatewayId) : undefined;
}

/** Two subject-safe tokens: bytes other than letters, digits, `_` and `-` become `=hh`. */
export function roomKey(tenant: TenantId, room: RoomId): RoomKey {
  return `${tenant}.${encodeToken(room)}` as RoomKey;
}

/** Undefined: one of the texts is no valid id. */
export function parseRoomOfTenant(tenantText: string, roomText: string): RoomKey | undefined {
  const [tenant, room] = [parseTenantId(tenantText), parseRoomId(roomText)];
  return tenant === undefined || room === undefined ? undefined : roomKey(tenant, room);
}

/** A key is what `roomKey` makes of a room: any other encoding of a room would be a second key for it. */
export function parseRoomKey(text: string): RoomKey | undefined {
  if (!ROOM_KEY.test(text)) return undefined;
  const key = text as RoomKey;
  const room = parseRoomId(decodedRoomOf(key) ?? "");
  return room !== undefined && (!text.includes("=") || roomKey(tenantOf(key), room) === text) ? key : undefined;
}

export function tenantOf(key: RoomKey): TenantId {
  return key.slice(0, key.indexOf(".")) as TenantId;
}

export function roomOf(key: RoomKey): RoomId {
  return decodeURIComponent(key.slice(key.indexOf(".") + 1).replaceAll("=", "%")) as RoomId;
}

/** Undefined: the escaped bytes are no UTF-8. */
function decodedRoomOf(key: RoomKey): string | undefined {
  try {
    return roomOf(key);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function encodeToken(room: RoomId): string {
  return encodeURIComponent(room)
    .replace(/[.!~*'()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => `=${hex.toLowerCase()}`);
}
