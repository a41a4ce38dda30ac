/** The published package: packed, installed into an empty folder, run by Node and bundled for browsers. */

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { SignJWT } from "jose";
import { build, type Rollup } from "vite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { EmptyProject } from "../test/system/empty-project.ts";
import { DemoSystem, FIRST_START_MS_MAX } from "../test/system/browser.ts";

const HOME = "node_modules/@coroom/client";
let app: EmptyProject;
let packed: string[];

beforeAll(() => {
  app = new EmptyProject();
  app.install(["client"], ["yjs"]);
  packed = readdirSync(join(app.folder, HOME), { recursive: true }).map(String);
});

afterAll(() => app.remove());

/** Checks the types of a file as an application with strict settings does. */
function compile(file: string): void {
  for (const resolution of [
    ["--module", "nodenext"],
    ["--module", "esnext", "--moduleResolution", "bundler"],
  ]) {
    const strict = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false"];
    app.tool("tsc", "--noEmit", ...strict, "--target", "es2022", "--lib", "es2022,dom", "--types", "", ...resolution, file);
  }
}

test("[PKG1] the package holds the build, its licence and its README, without tests or sources", () => {
  expect(packed).toEqual(
    expect.arrayContaining([
      "package.json",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "dist/client/index.js",
      "dist/client/index.d.ts",
      "dist/shared/wire/codec.js",
    ]),
  );
  expect(app.read(`${HOME}/LICENSE`)).toBe(readFileSync("LICENSE", "utf8"));
  expect(JSON.parse(app.read(`${HOME}/package.json`))).toMatchObject({ repository: { directory: "client" }, license: "Apache-2.0" });
  expect(packed.filter((path) => /\.test\.|testing|(?<!\.d)\.ts$/.test(path))).toEqual([]);
});

test("[PKG2] Node runs the package with its declared dependencies alone", () => {
  app.write(
    "run.js",
    `import * as Y from "yjs";
     import { CoroomConnection, CoroomProvider, RoomConnection } from "@coroom/client";
     const connection = new CoroomConnection({ url: "ws://127.0.0.1:9", token: "t" });
     const provider = new CoroomProvider({ connection, room: "notes", doc: new Y.Doc() });
     connection.on("status", ({ status }) => {
       if (status !== "waiting") return;
       console.log(provider.status, provider instanceof CoroomProvider, typeof RoomConnection);
       provider.destroy();
       connection.disconnect();
     });`,
  );
  expect(app.node("run.js")).toBe("waiting true function\n");
});

test("[PKG2] without IndexedDB a store reports what to do, and the room works without it", () => {
  app.write(
    "kept.js",
    `import * as Y from "yjs";
     import { CoroomProvider } from "@coroom/client";
     import { indexedDbStore } from "@coroom/client/indexeddb";
     const provider = new CoroomProvider({ url: "ws://127.0.0.1:9", token: "t", room: "notes", doc: new Y.Doc(), store: indexedDbStore({ owner: "acme/ada" }) });
     provider.on("error", ({ kind, message }) => {
       console.log(kind, message.includes("omit the option"));
       provider.destroy();
     });`,
  );
  expect(app.node("kept.js")).toBe("storage-failed true\n");
});

test("[PKG3] the package's types are complete", () => {
  app.write(
    "types.ts",
    `import * as Y from "yjs";
     import { type CommonRoom, CoroomProvider, type KnownEdit, RoomConnection, type Problem } from "@coroom/client";
     import { broadcastsOf } from "@coroom/client/broadcasts";
     import { showDevtools } from "@coroom/client/devtools";
     import { forgetIndexedDbStore, indexedDbStore } from "@coroom/client/indexeddb";
     import { leaderboardOf, watchTenantBoard } from "@coroom/client/leaderboard";
     import { DeviceStore, type EditStore } from "@coroom/client/store";
     const own: EditStore = indexedDbStore({ owner: "acme/ada" });
     const unset: { store?: DeviceStore; connect?: boolean; mergeUnsent?: boolean; inFlightEditsMax?: number } = {};
     const { store: noStore, connect, mergeUnsent, inFlightEditsMax } = unset;
     new CoroomProvider({ url: "ws://h", room: "n", doc: new Y.Doc(), token: "t", connection: undefined, store: noStore, connect, mergeUnsent, inFlightEditsMax });
     new RoomConnection({ url: "ws://h", room: "n", token: "t", format: undefined });
     const store = new DeviceStore(own);
     const kept = new CoroomProvider({ url: "ws://h", room: "kept", doc: new Y.Doc(), token: "t", store });
     kept.on("restored", () => kept.stored satisfies boolean);
     void forgetIndexedDbStore({ owner: "acme/ada" });
     const provider = new CoroomProvider({ url: "ws://h", room: "notes", doc: new Y.Doc(), token: async () => "t.o.k" });
     provider.on("status", ({ status }) => status satisfies "disconnected" | "stopped" | "waiting" | "connecting" | "connected" | "degraded");
     provider.on("connection-close", (close, { room, status, saved }) => [close?.code, room.length, status === "waiting", saved satisfies boolean]);
     provider.awareness.setLocalStateField("user", { name: "Ada" });
     provider.presence.set({ cursor: { x: 1, y: 2 }, mood: "calm" });
     for (const { name, role, cursor, fields } of provider.participants.values()) [name.length, role === "spectator", cursor?.x, fields["mood"]];
     provider.on("error", (problem: Problem) => { if (problem.kind === "edit-too-large") problem.bytesMax.toFixed(); });
     new RoomConnection({ url: "ws://h", token: "t", room: "notes" }).on("edit", ({ seq, payload, own }) => [seq + 1, payload.byteLength, own === true]);
     leaderboardOf(provider).subscribe({ window: "day" }).on("change", ({ ranking }) => ranking[0]?.score.toFixed());
     watchTenantBoard({ url: "ws://h", token: "t", board: "people", window: "day" }).on("change", ({ ranking }) => ranking[0]?.score.toFixed());
     const rooms = watchTenantBoard({ url: "ws://h", token: async () => "t.o.k", board: "rooms", window: "last-week" });
     rooms.ranking satisfies readonly { readonly rank: number; readonly room: string; readonly points: number }[];
     // @ts-expect-error a room has points, and no name
     rooms.ranking[0]?.name;
     const show = (room: CommonRoom): void => room.on("status", ({ status, retryInMs }) => [status === room.status, retryInMs?.toFixed()]);
     show(provider);
     show(new RoomConnection({ url: "ws://h", token: "t", room: "notes" }));
     show(new CoroomProvider<{ user: string }>({ url: "ws://h", room: "n", doc: new Y.Doc(), token: "t" }));
     // @ts-expect-error only a RoomConnection has this event
     (provider as CommonRoom).on("edit", () => {});
     showDevtools(provider, { isOpen: true })();
     broadcastsOf(new CoroomProvider<{ user: string }>({ url: "ws://h", room: "n", doc: new Y.Doc(), token: "t" })).send({ kind: "wave" });
     // @ts-expect-error its internal messages are no public methods
     kept.awareness.receive;
     const drawing = new RoomConnection({ url: "ws://h", token: "t", room: "drawing" });
     drawing.on("edit", ({ client, counter }) => {
       const since: KnownEdit = { position: drawing.position, last: { client, counter } };
       new RoomConnection({ url: "ws://h", token: "t", room: "drawing", since });
     });
     // @ts-expect-error a room needs a url and a token, or a connection
     new RoomConnection({ room: "notes" });`,
  );
  compile("types.ts");
});

/** Types of the standard library, and their parameters, that TypeScript has had only since 5.2 or later. */
const NEWER_TYPES =
  /\b(?:\w+Array|DataView)<Array|\b(?:Map|Set|Array|String|RegExpString)Iterator<|IteratorObject<|NoInfer<|\b(?:Async)?Disposable\b/;

test("[PKG17] the types need no TypeScript newer than 5.1", () => {
  const types = packed.filter((path) => path.endsWith(".d.ts"));
  expect(types.length).toBeGreaterThan(20);
  expect(types.filter((path) => NEWER_TYPES.test(app.read(`${HOME}/${path}`)))).toEqual([]);
});

test("[PKG15] optional options of boards and of the developer panel may be undefined", () => {
  app.write(
    "options.ts",
    `import { RoomConnection, type EditFormat } from "@coroom/client";
     import { showDevtools } from "@coroom/client/devtools";
     import { type BoardOptions, leaderboardOf, watchTenantBoard } from "@coroom/client/leaderboard";
     const unset: { window?: "day"; role?: BoardOptions["role"]; shown?: number; isOpen?: boolean; condense?: EditFormat["condense"] } = {};
     const { window, role, shown, isOpen, condense } = unset;
     const merge = ([payload]: readonly Uint8Array[]): Uint8Array => payload!;
     const room = new RoomConnection({ url: "ws://h", token: "t", room: "n", format: { merge, split: () => undefined, condense } });
     leaderboardOf(room).subscribe({ window, role, shown });
     void leaderboardOf(room).read({ window: "last-week", role, shown });
     watchTenantBoard({ url: "ws://h", token: "t", board: "people", window, role, shown });
     showDevtools(room, { isOpen });`,
  );
  compile("options.ts");
});

test("[PKG13] presence and broadcasts accept interfaces, and refuse values that JSON cannot represent", () => {
  app.write(
    "json.ts",
    `import * as Y from "yjs";
     import { CoroomProvider, type JsonOf, type Presence, type PresenceOf, RoomConnection } from "@coroom/client";
     import { broadcastsOf, type RoomBroadcasts } from "@coroom/client/broadcasts";
     interface Tool { readonly name: string; readonly sizes: readonly number[]; readonly next?: Tool }
     interface Shown { tool: Tool; typing?: boolean; place: { x: number; y: number } | null }
     interface Pointer { cursor: { x: number; y: number } | null }
     type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
     type JsonValue = string | number | boolean | null | JsonObject | JsonArray;
     type JsonObject = { [Name in string]: JsonValue } & { [Name in string]?: JsonValue | undefined };
     interface JsonArray extends Array<JsonValue> {}
     interface JsonTree { [name: string]: string | JsonTree | readonly JsonTree[] }
     declare const json: Json, record: Record<string, Json>, value: JsonValue, object: JsonObject, list: JsonArray, tree: JsonTree;
     class Vector { constructor(readonly x: number) {} get length(): number { return this.x; } }
     class Account { secret = () => 1; }
     declare const tool: Tool, shown: Shown, pointer: Pointer, plain: Presence, text: Y.Text, anything: unknown;
     const room = new RoomConnection({ url: "ws://h", token: "t", room: "notes" });
     const provider = new CoroomProvider<Shown>({ url: "ws://h", room: "notes", doc: new Y.Doc(), token: "t" });
     const broadcasts: RoomBroadcasts = broadcastsOf(provider);
     for (const { presence } of [room, provider]) {
       presence.set(shown);
       presence.set({ ...shown, typing: undefined, cursor: { x: 1, y: 2 } });
       presence.set(pointer);
       presence.set(plain);
       presence.set(record);
       presence.set(object);
       presence.set(tree);
       presence.set({ json, value, object, list, tree, cursor: null });
       presence.set({ tool: null, anything, vector: new Vector(1), caret: Y.createRelativePositionFromTypeIndex(text, 0) });
       // @ts-expect-error a cursor has two coordinates
       presence.set({ cursor: { x: 1 } });
       // @ts-expect-error JSON has no dates
       presence.set({ at: new Date() });
       // @ts-expect-error JSON has no maps
       presence.set({ tool: { sizes: new Map([[1, 2]]) } });
       // @ts-expect-error JSON has no bytes
       presence.set({ image: new Uint8Array(1) });
       // @ts-expect-error JSON has no dates, nor in a list of values of JSON
       presence.set({ list: [json, new Date()] });
       // @ts-expect-error JSON has no functions
       presence.set({ draw: () => {} });
       // @ts-expect-error the object has a method
       presence.set({ account: new Account() });
       // @ts-expect-error JSON has no bigints
       presence.set({ count: 1n });
       // @ts-expect-error the fields are an object
       presence.set(new Date());
       // @ts-expect-error the fields are an object
       presence.set(() => {});
       // @ts-expect-error the fields have names
       presence.set([1]);
     }
     for (const message of [tool, shown, "wave", 1, null, [tool], anything, json, value, object, list, tree]) broadcasts.send(message);
     broadcasts.send(tool);
     broadcasts.send(json);
     broadcasts.send(value);
     broadcasts.send({ object, list, tree });
     broadcasts.send({ kind: "wave", tool });
     // @ts-expect-error JSON has no dates
     broadcasts.send({ at: new Date() });
     // @ts-expect-error JSON has no maps
     broadcasts.send(new Map());
     // @ts-expect-error JSON has no functions
     broadcasts.send(() => {});
     function announce<Message extends object>(message: Message & JsonOf<Message>): void { broadcasts.send<Message>(message); }
     announce(tool);
     function show<Given extends object>(given: PresenceOf<Given>): void { room.presence.set<Given>(given); }
     show(shown);`,
  );
  compile("json.ts");
});

test("[PKG4] a bundle for browsers uses the browser's WebSocket, and nothing of Node", () => {
  app.write("index.html", `<script type="module" src="./page.js"></script>`);
  app.write("page.js", `import { RoomConnection } from "@coroom/client"; globalThis.connect = (options) => new RoomConnection(options);`);
  app.tool("vite", "build", app.folder, "--logLevel", "error");
  const assets = join(app.folder, "dist/assets");
  const bundle = readdirSync(assets)
    .map((name) => readFileSync(join(assets, name), "utf8"))
    .join("");
  expect(bundle).toContain("new WebSocket(");
  expect(bundle).not.toMatch(/permessage-deflate|maxPayload|node:|indexedDB/);
  expect(bundle.length).toBeLessThan(150_000);
});

test("[PKG5] CommonJS requires the package in Node", () => {
  app.write(
    "common.cjs",
    `const { CoroomConnection, CoroomProvider, RoomConnection } = require("@coroom/client");
     const { indexedDbStore } = require("@coroom/client/indexeddb");
     const { leaderboardOf } = require("@coroom/client/leaderboard");
     const { broadcastsOf } = require("@coroom/client/broadcasts");
     const { DeviceStore } = require("@coroom/client/store");
     console.log([CoroomConnection, CoroomProvider, RoomConnection, indexedDbStore, leaderboardOf, broadcastsOf, DeviceStore].map((one) => typeof one).join());`,
  );
  expect(app.node("common.cjs")).toBe(`${Array(7).fill("function").join()}\n`);
});

test("[PKG12] a document of another copy of Yjs is rejected with what to do, and CommonJS loads the copy of the package", () => {
  const run = (load: string): string => {
    app.write(
      "copies.cjs",
      `const { CoroomProvider } = require("@coroom/client");
       (async () => {
         const Y = ${load};
         try {
           new CoroomProvider({ url: "ws://127.0.0.1:9", token: "t", room: "notes", doc: new Y.Doc(), connect: false });
           console.log("accepted");
         } catch ({ message }) {
           console.log(message);
         }
       })();`,
    );
    return app.node("copies.cjs");
  };
  expect(run(`require("yjs")`)).toContain('in CommonJS with `import("yjs")` instead of `require("yjs")`');
  expect(run(`await import("yjs")`)).toBe("accepted\n");
});

test("[PKG6] two programs in an empty project edit one document on a running system", { timeout: FIRST_START_MS_MAX }, async () => {
  const secret = randomBytes(32).toString("hex");
  const system = await DemoSystem.start({ JWT_SECRET: secret });
  onTestFinished(() => system.stop());
  const token = await new SignJWT({ rooms: ["notes"], rights: ["read", "write"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject("ada")
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(secret));
  app.write(
    "edit.js",
    `import * as Y from "yjs";
     import { CoroomProvider } from "@coroom/client";
     const [url, token, text] = process.argv.slice(2);
     const doc = new Y.Doc();
     const provider = new CoroomProvider({ url, token, room: "notes", doc });
     provider.once("synced", () => {
       doc.getText("t").insert(doc.getText("t").length, text);
       provider.on("saved", (saved) => {
         if (!saved) return;
         console.log(doc.getText("t").toString());
         provider.destroy();
       });
     });`,
  );
  const url = system.url.replace("http", "ws");
  expect(app.node("edit.js", url, token, "hello ")).toBe("hello \n");
  expect(app.node("edit.js", url, token, "world")).toBe("hello world\n");
});

/** The bundles in README. Yjs and lib0, which Yjs contains, are not counted: an application with Yjs has both. */
const PROVIDER = `export { CoroomProvider } from "@coroom/client";`;
const BUNDLES: Readonly<Record<string, string>> = {
  "`CoroomProvider`": PROVIDER,
  "`RoomConnection`": `export { RoomConnection } from "@coroom/client"`,
  "`CoroomProvider` and `indexedDbStore`": `${PROVIDER} export { indexedDbStore } from "@coroom/client/indexeddb"`,
  "`CoroomProvider` and `leaderboardOf`": `${PROVIDER} export { leaderboardOf } from "@coroom/client/leaderboard"`,
  "`watchTenantBoard` alone": `export { watchTenantBoard } from "@coroom/client/leaderboard"`,
  "`CoroomProvider` and `watchTenantBoard`": `${PROVIDER} export { watchTenantBoard } from "@coroom/client/leaderboard"`,
  "`CoroomProvider` and `broadcastsOf`": `${PROVIDER} export { broadcastsOf } from "@coroom/client/broadcasts"`,
  "`CoroomProvider` and `showDevtools`": `${PROVIDER} export { showDevtools } from "@coroom/client/devtools"`,
};
const KILOBYTES_OFF_MAX = 1;

test.each(Object.entries(BUNDLES))("[PKG7] README states the size of a bundle with %s", async (bundle, code) => {
  app.write("entry.js", code);
  const [built] = (await build({
    configFile: false,
    logLevel: "error",
    root: app.folder,
    build: {
      write: false,
      target: "es2022",
      lib: { entry: join(app.folder, "entry.js"), formats: ["es"] },
      rollupOptions: { external: [/^yjs$/, /^lib0\//], output: { minify: true } },
    },
  })) as Rollup.RollupOutput[];
  const text = built!.output[0].code;
  const [minified, compressed] = [text.length / 1000, gzipSync(text, { level: 9 }).byteLength / 1000];
  const row = `| ${bundle} | ${minified.toFixed(1)} KB | ${compressed.toFixed(1)} KB |`;
  const stated = readFileSync("client/README.md", "utf8")
    .split("\n")
    .find((line) => line.startsWith(`| ${bundle} |`));
  const [, , , kilobytes = ""] = stated?.split("|") ?? [];
  expect(Math.abs(Number.parseFloat(kilobytes) - compressed), `stated ${stated}, measured ${row}`).toBeLessThan(KILOBYTES_OFF_MAX);
});
