/** The package as it is published: packed, taken into an empty folder, run by Node and bundled for browsers. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test } from "vitest";

const client = dirname(fileURLToPath(import.meta.url));
const modules = join(client, "..", "node_modules");
const app = mkdtempSync(join(tmpdir(), "coroom-client-"));
let packed: string[];

beforeAll(() => {
  execFileSync(join(modules, ".bin/tsc"), ["-p", join(client, "tsconfig.build.json")]);
  execFileSync("npm", ["pack", "--pack-destination", app], { cwd: client, stdio: "pipe" });
  const tarball = readdirSync(app).find((name) => name.endsWith(".tgz"))!;
  const home = join(app, "node_modules/@coroom");
  mkdirSync(home, { recursive: true });
  execFileSync("tar", ["-xzf", join(app, tarball), "-C", home]);
  execFileSync("mv", [join(home, "package"), join(home, "client")]);
  packed = readdirSync(join(home, "client"), { recursive: true }).map(String);
  for (const dependency of ["yjs", "lib0", "ws", "idb"]) symlinkSync(join(modules, dependency), join(app, "node_modules", dependency));
  writeFileSync(join(app, "package.json"), `{ "type": "module" }`);
});

afterAll(() => rmSync(app, { recursive: true, force: true }));

test("[PKG1] the package holds the build, its licence and its README, without tests or sources", () => {
  expect(packed).toEqual(
    expect.arrayContaining([
      "package.json",
      "README.md",
      "LICENSE",
      "dist/client/index.js",
      "dist/client/index.d.ts",
      "dist/shared/wire/codec.js",
    ]),
  );
  expect(readFileSync(join(client, "LICENSE"), "utf8")).toBe(readFileSync(join(client, "../LICENSE"), "utf8"));
  expect(packed.filter((path) => /\.test\.|testing|(?<!\.d)\.ts$/.test(path))).toEqual([]);
});

test("[PKG2] Node runs the package with its declared dependencies alone", () => {
  writeFileSync(
    join(app, "run.js"),
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
  expect(execFileSync(process.execPath, ["run.js"], { cwd: app, timeout: 120_000 }).toString()).toBe("waiting true function\n");
});

test("[PKG2] without IndexedDB a store reports what to do, and the room works without it", () => {
  writeFileSync(
    join(app, "kept.js"),
    `import * as Y from "yjs";
     import { CoroomProvider } from "@coroom/client";
     import { indexedDbStore } from "@coroom/client/indexeddb";
     const provider = new CoroomProvider({ url: "ws://127.0.0.1:9", token: "t", room: "notes", doc: new Y.Doc(), store: indexedDbStore({ owner: "acme/ada" }) });
     provider.on("error", ({ kind, message }) => {
       console.log(kind, message.includes("omit the option"));
       provider.destroy();
     });`,
  );
  expect(execFileSync(process.execPath, ["kept.js"], { cwd: app, timeout: 120_000 }).toString()).toBe("storage-failed true\n");
});

test("[PKG3] the package's types are complete", () => {
  writeFileSync(
    join(app, "types.ts"),
    `import * as Y from "yjs";
     import { CoroomProvider, RoomConnection, type EditStore, type Problem } from "@coroom/client";
     import { forgetIndexedDbStore, indexedDbStore } from "@coroom/client/indexeddb";
     const store: EditStore = indexedDbStore({ owner: "acme/ada" });
     const kept = new CoroomProvider({ url: "ws://h", room: "kept", doc: new Y.Doc(), token: "t", store });
     kept.on("restored", () => kept.stored satisfies boolean);
     void forgetIndexedDbStore({ owner: "acme/ada" });
     const provider = new CoroomProvider({ url: "ws://h", room: "notes", doc: new Y.Doc(), token: async () => "t" });
     provider.on("status", ({ status }) => status satisfies "disconnected" | "stopped" | "waiting" | "connecting" | "connected" | "degraded");
     provider.awareness.setLocalStateField("user", { name: "Ada" });
     provider.presence.set({ cursor: { x: 1, y: 2 }, mood: "calm" });
     for (const { name, role, cursor, fields } of provider.participants.values()) [name.length, role === "spectator", cursor?.x, fields["mood"]];
     provider.on("error", (problem: Problem) => { if (problem.kind === "edit-too-large") problem.bytesMax.toFixed(); });
     new RoomConnection({ url: "ws://h", token: "t", room: "notes" }).on("edit", ({ seq, payload, own }) => [seq + 1, payload.byteLength, own === true]);
     // @ts-expect-error what its own parts say to each other is none of its methods
     kept.awareness.receive;
     // @ts-expect-error a room is reached by url and token, or over a connection
     new RoomConnection({ room: "notes" });`,
  );
  for (const resolution of [
    ["--module", "nodenext"],
    ["--module", "esnext", "--moduleResolution", "bundler"],
  ]) {
    execFileSync(
      join(modules, ".bin/tsc"),
      ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom", "--types", "", ...resolution, "types.ts"],
      { cwd: app },
    );
  }
});

test("[PKG4] a bundle for browsers uses the browser's WebSocket, and nothing of Node", () => {
  writeFileSync(join(app, "index.html"), `<script type="module" src="./page.js"></script>`);
  writeFileSync(
    join(app, "page.js"),
    `import { RoomConnection } from "@coroom/client"; globalThis.connect = (options) => new RoomConnection(options);`,
  );
  execFileSync(join(modules, ".bin/vite"), ["build", app, "--logLevel", "error"]);
  const assets = join(app, "dist/assets");
  const bundle = readdirSync(assets)
    .map((name) => readFileSync(join(assets, name), "utf8"))
    .join("");
  expect(bundle).toContain("new WebSocket(");
  expect(bundle).not.toMatch(/permessage-deflate|maxPayload|node:|indexedDB/);
  expect(bundle.length).toBeLessThan(150_000);
});
