/** The package `coroom` as it is published: packed, installed into an empty folder, started with npx. */

import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import * as Y from "yjs";

import { CoroomProvider } from "../client/main.ts";
import { spawnChild } from "../engines/child.ts";
import { FIRST_START_MS_MAX } from "../test/system/browser.ts";
import { EmptyProject } from "../test/system/empty-project.ts";
import { eventually } from "../test/system/eventually.ts";

const STOP_PATIENCE_MS = 20_000;
const INSTALL_MS_MAX = 300_000;
let project: EmptyProject;

/** Takes the dependencies from the registry: their names here are aliases, and some have builds for each platform. */
beforeAll(() => {
  project = new EmptyProject();
  const npm = (...args: string[]) => execFileSync("npm", args, { cwd: project.folder, stdio: "pipe", timeout: INSTALL_MS_MAX });
  npm("pack", "--silent", "--ignore-scripts", "--pack-destination", project.folder, resolve("."));
  const tarball = readdirSync(project.folder).find((name) => name.endsWith(".tgz"))!;
  npm("install", "--prefer-offline", "--no-audit", "--no-fund", `./${tarball}`);
}, INSTALL_MS_MAX);

afterAll(() => project.remove());

test("[PKG9] the package contains all files that the roles and pages need, and neither tests nor source maps", () => {
  const packed = readdirSync(join(project.folder, "node_modules/coroom"), { recursive: true }).map(String);
  expect(packed).toEqual(
    expect.arrayContaining([
      "LICENSE",
      "README.md",
      "CHANGELOG.md",
      "dist/cli/main.js",
      "dist/gateway/openapi.json",
      "console/dist/index.html",
      "console/dist/operations/index.html",
    ]),
  );
  expect(packed.filter((path) => !path.includes("node_modules") && /\.test\.|testing|\.map$|dist\/(?:bench|test)\//.test(path))).toEqual(
    [],
  );
});

test("[PKG10] coroom dev starts everything in an empty folder, and a client writes to it", { timeout: FIRST_START_MS_MAX }, async () => {
  const logFile = join(project.folder, "log");
  const env = { COROOM_PORT: "0", COROOM_CACHE_DIR: resolve(".coroom/cache") }; // Shared with other tests, which saves the download.
  // The program that npx runs. npx itself would not forward the signal that ends it.
  const path = join(project.folder, "node_modules/.bin/coroom");
  const child = await spawnChild({ path, args: ["dev"], env, cwd: project.folder, logFile });
  onTestFinished(() => child.stop(STOP_PATIENCE_MS));
  const printed = (): string => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");
  let hasEnded = false;
  void child.exited.then(() => (hasEnded = true));
  await eventually("it is ready, or has ended", () => hasEnded || /^coroom ready /m.test(printed()), FIRST_START_MS_MAX);
  expect(hasEnded ? printed() : "running").toBe("running");
  const url = /^coroom ready (\S+)/m.exec(printed())![1]!;
  expect(await (await fetch(url)).text()).toContain("<title>");
  expect((await fetch(`${url}/operations/`)).status).toBe(200);

  const command = ["--no-install", "coroom", "token", "--room", "notes", "--user", "ada"];
  const { stdout } = await promisify(execFile)("npx", command, { cwd: project.folder });
  const doc = new Y.Doc();
  const provider = new CoroomProvider({ url: url.replace("http", "ws"), token: stdout.trim(), room: "notes", doc });
  onTestFinished(() => provider.destroy());
  doc.getText("t").insert(0, "hello");
  await eventually("the edit is saved", () => provider.saved);
  expect(readdirSync(join(project.folder, ".coroom"))).toContain("data");
});

test("[PKG11] without engines and apt, the error names each missing program and the remedy", async () => {
  const only = join(project.folder, "only-node");
  mkdirSync(only);
  symlinkSync(process.execPath, join(only, "node"));
  const bin = resolve(project.folder, "node_modules/coroom/dist/cli/main.js");
  const ended = promisify(execFile)(process.execPath, [bin, "dev", "--port", "0"], { cwd: only, env: { PATH: only } });
  const { stdout, stderr, code } = (await ended.catch((error: unknown) => error)) as { stdout: string; stderr: string; code: number };
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("no usable nats-server found. To fix this, install nats-server 2.11 or newer (macOS: brew install nats-server)");
  expect(stderr).toContain("this machine has no apt-get");
});
