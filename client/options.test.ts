/** Checks of options from JavaScript applications, which have no types. */

import { expect, test } from "vitest";
import * as Y from "yjs";

import { leaderboardOf } from "./boards/main.ts";
import { ConnectionHost, type ConnectionOptions } from "./connection/connection-host.ts";
import { indexedDbStore } from "./io/indexed-db-store.ts";
import { DeviceStore } from "./persistence/device-store.ts";
import type { ClientWorld } from "./ports.ts";
import { broadcastsOf } from "./presence/room-broadcasts.ts";
import type { RoomConnectionOptions } from "./room/room-events.ts";
import { RoomConnection } from "./room/room-connection-host.ts";
import { serverOn } from "./testing/test-page.ts";
import type { ProviderOptions } from "./yjs/provider-events.ts";
import { YjsProvider } from "./yjs/yjs-provider.ts";

const GOOD = { url: "ws://h", token: "t", room: "notes", connect: false };
const world = (): ClientWorld => serverOn().world();
const provider = (options: unknown) => () => new YjsProvider(options as ProviderOptions, world());
const room = (options: unknown) => () => new RoomConnection(options as RoomConnectionOptions, world());
const connection = (options: unknown) => () => new ConnectionHost(options as ConnectionOptions, world());
const send = (payload: unknown) => () => new RoomConnection(GOOD as RoomConnectionOptions, world()).send(payload as Uint8Array);

test.each([
  ["a provider of nothing", provider(undefined), "options are missing: pass an object with url, token, room and doc"],
  ["a provider without a document", provider(GOOD), "`doc` must be a Y.Doc"],
  ["a provider of a type of Yjs", provider({ ...GOOD, doc: new Y.Doc().getText("t") }), "`doc` must be a Y.Doc"],
  ["a room of nothing", room(undefined), "options are missing: pass an object with url, token and room"],
  ["a room without a name", room({ ...GOOD, room: undefined }), "`room` must be the room's id"],
  ["a room with an empty name", room({ ...GOOD, room: "" }), "`room` must be the room's id"],
  ["a room with a number", room({ ...GOOD, room: 7 }), "`room` must be the room's id"],
  ["a room without a server", room({ ...GOOD, url: undefined }), "pass `url` and `token`, or a `connection`"],
  ["a room on no connection", room({ room: "notes", connection: {} }), "`connection` must be a CoroomConnection"],
  ["a room with no store", room({ ...GOOD, store: {} }), "`store` must be a DeviceStore"],
  ["a store without an owner", () => indexedDbStore(undefined as never), "options are missing: pass an object with owner"],
  ["a store of nothing", () => new DeviceStore(undefined as never), "a DeviceStore needs your EditStore"],
  ["a store that cannot be opened", () => new DeviceStore({} as never), "a DeviceStore needs your EditStore"],
  ["broadcasts of no room", () => broadcastsOf(undefined as never), "pass a room: a CoroomProvider or a RoomConnection"],
  ["a leaderboard of no room", () => leaderboardOf({} as never), "pass a room: a CoroomProvider or a RoomConnection"],
  ["a board of no window", () => leaderboardOf(room(GOOD)()).read(undefined as never), "options are missing: pass an object with window"],
  ["a room that nothing may be sent in", room({ ...GOOD, inFlightEditsMax: 0 }), "must be a whole number from 1"],
  ["a room in which half an edit may be sent", room({ ...GOOD, inFlightEditsMax: 0.5 }), "must be a whole number from 1"],
  ["an edit that is a text", send("hello"), "`payload` must be a Uint8Array. Convert a string with new TextEncoder().encode(text)."],
  ["an edit that is an object", send({ byteLength: 1 }), "`payload` must be a Uint8Array"],
  ["an edit of numbers of another width", send(new Float32Array(1)), "`payload` must be a Uint8Array"],
  ["an edit of nothing", send(undefined), "`payload` must be a Uint8Array"],
  ["a connection of nothing", connection(undefined), "options are missing: pass an object with url and token"],
  ["a connection without a server", connection({ token: "t" }), "url must look like ws://host:port"],
  ["a connection without a token", connection({ url: "ws://h" }), "`token` must be a JWT, or a function"],
  ["a connection with an empty token", connection({ url: "ws://h", token: "" }), "`token` must be a JWT, or a function"],
  ["a promise for a token", connection({ url: "ws://h", token: Promise.resolve("t") }), "`token` must be a JWT, or a function"],
  ["a store of nobody", () => indexedDbStore({} as { owner: string }), "`owner` must identify the user"],
])("[OPT1] %s is rejected with the expected value", (_, make, message) => {
  expect(make).toThrow(message);
});

test("[OPT2] a provider whose options are rejected leaves nothing on the document", () => {
  const doc = new Y.Doc();
  const listeners = () => [...doc._observers.values()].reduce((count, each) => count + each.size, 0);
  const before = listeners();
  expect(provider({ ...GOOD, doc, room: "" })).toThrow("`room`");
  expect(listeners()).toBe(before);
});
