/** The release script in a clone of the repository, and the checks of what is installed, with the real npm and git. */

import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { type LockEntries, productionTree } from "./production-tree.ts";

const lockFileIn = (folder: string) =>
  JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as { readonly packages: LockEntries };
const { packages } = lockFileIn(".");
/** The release builds everything, while other tests use the machine's cores. */
const BUILD_MS_MAX = 600_000;
const FOLDERS: Readonly<Record<string, string>> = { "coroom": "", "@coroom/client": "client", "@coroom/react": "react" };

/** A clone in which version 9.9.9 was released, and what the script did in it: first beside a stray file, then without. */
let clone: string;
let refused: Ended;
let released: Ended;
beforeAll(async () => {
  clone = mkdtempSync(join(tmpdir(), "coroom-clone-"));
  git("clone", "--quiet", "--shared", resolve("."), ".");
  symlinkSync(resolve("node_modules"), join(clone, "node_modules"));
  writeFileSync(join(clone, "stray"), "");
  refused = await script("main", { cwd: clone, args: ["9.9.9"] });
  rmSync(join(clone, "stray"));
  for (const changelog of ["client/CHANGELOG.md", "react/CHANGELOG.md"]) {
    const text = readFileSync(join(clone, changelog), "utf8");
    if (!text.includes("## Unreleased"))
      writeFileSync(join(clone, changelog), text.replace("\n## ", "\n## Unreleased\n\n- Something.\n\n## "));
  }
  git("commit", "--quiet", "--all", "--allow-empty", "--message", "changelogs");
  released = await script("main", { cwd: clone, args: ["9.9.9"] });
}, BUILD_MS_MAX);
afterAll(() => rmSync(clone, { recursive: true }));

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: clone, encoding: "utf8", env: { ...process.env, ...IDENTITY } }).trim();
}

test("[SHIP7] a release has the version everywhere, packages, SBOMs, a commit and a tag", async () => {
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("has changes") });
  expect(released).toMatchObject({ code: 0, stdout: expect.stringMatching(/npm publish .*coroom-client-9\.9\.9\.tgz/) });
  expect(git("status", "--porcelain")).toBe("");
  expect(JSON.parse(readFileSync(join(clone, "release/previous.json"), "utf8"))).toEqual({ commit: git("rev-parse", "HEAD~1") });
  expect(git("log", "-1", "--format=%s", "v9.9.9")).toBe("release: publish version 9.9.9");
  const json = (path: string): { version: string } => JSON.parse(readFileSync(join(clone, path), "utf8")) as { version: string };
  const { packages: locked } = lockFileIn(clone);
  const versions = ["", "client", "react"].flatMap((folder) => [json(join(folder, "package.json")).version, locked[folder]!.version]);
  expect(new Set(versions)).toEqual(new Set(["9.9.9"]));
  // Ranges of peers and examples, and tags of images.
  const naming = (version: string): string[] =>
    git("ls-files", "*.json", "deploy", "docs/operations")
      .split("\n")
      .filter((file) =>
        new RegExp(`(@coroom/\\w+": "\\^|coroom:|newTag: "|[vV]ersion: ")${version.replaceAll(".", "\\.")}\\b`).test(
          readFileSync(join(clone, file), "utf8"),
        ),
      );
  expect(naming(packages[""]!.version!)).toEqual([]);
  expect(naming("9.9.9")).toEqual(
    expect.arrayContaining([
      "react/package.json",
      "examples/tiptap/package.json",
      "deploy/helm/Chart.yaml",
      "deploy/kubernetes/kustomization.yaml",
      "docs/operations/kubernetes.md",
    ]),
  );
  expect(readFileSync(join(clone, "CHANGELOG.md"), "utf8")).toMatch(/^## Unreleased\n\n## 9\.9\.9 - \d{4}-\d\d-\d\d$/m);
  expect(readdirSync(join(clone, "release/dist")).toSorted()).toEqual(
    [
      "SHA256SUMS",
      ...["coroom", "coroom-client", "coroom-react"].flatMap((name) => [`${name}-9.9.9.cdx.json`, `${name}-9.9.9.tgz`]),
    ].toSorted(),
  );
  execFileSync("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: join(clone, "release/dist"), stdio: "pipe" });
  // A dry run does the same in a copy, with the copy's tags.
  expect(await script("main", { cwd: clone, args: ["9.9.9", "--dry-run"] })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("the tag v9.9.9 exists"),
  });
});

test.each(Object.entries(FOLDERS))("[SHIP3] the SBOM of %s is exactly its production tree", (name, folder) => {
  const file = `release/dist/${name.replace("@", "").replace("/", "-")}-9.9.9.cdx.json`;
  const { bomFormat, metadata, components } = JSON.parse(readFileSync(join(clone, file), "utf8")) as {
    bomFormat: string;
    metadata: { component: { name: string; version: string } };
    components: { name: string; version: string; hashes?: unknown }[];
  };
  expect([bomFormat, metadata.component.name, metadata.component.version]).toEqual(["CycloneDX", name, "9.9.9"]);
  const { packages: locked } = lockFileIn(clone);
  const expected = productionTree(locked, folder).map((path) => `${path.split("node_modules/").at(-1)}@${locked[path]!.version}`);
  const listed = components.map((component) => `${component.name}@${component.version}`);
  expect(listed.toSorted()).toEqual(expected.toSorted());
  if (name === "coroom") expect(listed.some((component) => component.startsWith("yjs@"))).toBe(true);
});

test("[SHIP5] the audit fails for a known vulnerability, and skips a registry that has no audit", async () => {
  const advisory = { id: 1, url: "https://example.org/1", title: "bad", severity: "high", vulnerable_versions: "*", cwe: [], cvss: {} };
  const version = packages["node_modules/aws4fetch"]!.version!;
  const packument = {
    "name": "aws4fetch",
    "dist-tags": { latest: version },
    "versions": { [version]: { name: "aws4fetch", version, dist: {} } },
  };
  const warning = await registry(({ url }, answer) =>
    answer.end(JSON.stringify(url === "/aws4fetch" ? packument : { aws4fetch: [advisory] })),
  );
  const found = await script("audit", { registry: warning });
  expect(found).toMatchObject({ code: 1, stdout: expect.stringContaining("high: aws4fetch *") });
  const none = await script("audit", { registry: await registry((_, answer) => answer.end("{}")) });
  expect(none).toMatchObject({ code: 0, stdout: "npm audit: no known vulnerabilities in production dependencies\n" });
  const mirror = await script("audit", { registry: await registry((_, answer) => answer.writeHead(405).end()) });
  expect(mirror).toMatchObject({ code: 0, stdout: expect.stringContaining("skipped, because the registry has no audit endpoint (405") });
  const broken = await script("audit", { registry: await registry((_, answer) => answer.writeHead(400).end("{}")) });
  expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining("npm audit failed") });
});

test("[SHIP6] installed binaries of uWebSockets.js are compared with upstream's, which may be out of reach", async () => {
  const { modules, node } = process.versions;
  const build = `@uwsjs/${process.platform}-${process.arch}-${node.split(".")[0]}`;
  const cwd = mkdtempSync(join(tmpdir(), "coroom-uws-"));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  mkdirSync(join(cwd, "node_modules", build), { recursive: true });
  writeFileSync(join(cwd, "node_modules", build, "package.json"), `{ "version": "20.51.4" }`);
  writeFileSync(join(cwd, "node_modules", build, "uws.node"), "the binary");
  let body = "the binary";
  const path = `/v20.51.0/uws_${process.platform}_${process.arch}_${modules}.node`;
  const upstream = await registry((request, answer) => (request.url === path ? answer.end(body) : answer.writeHead(404).end()));
  const compare = (from: string) => script("uws-binaries", { cwd, args: ["--from", from] });
  expect(await compare(upstream)).toMatchObject({ code: 0, stdout: expect.stringContaining("as upstream's release") });
  body = "another binary";
  expect(await compare(upstream)).toMatchObject({ code: 1, stdout: expect.stringContaining("DIFFERS") });
  expect(await compare(`${upstream}/fork`)).toMatchObject({ code: 2, stdout: expect.stringContaining("answers 404") });
  expect(await compare("http://127.0.0.1:9")).toMatchObject({ code: 2, stdout: expect.stringContaining("is not reachable") });
});

async function registry(answer: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** A clone may have no identity for commits. */
const IDENTITY = { GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@example.org", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@example.org" };

async function script(
  name: string,
  { cwd = ".", args = [], registry }: { cwd?: string; args?: readonly string[]; registry?: string },
): Promise<Ended> {
  const npm = registry === undefined ? {} : { npm_config_registry: registry, npm_config_fetch_retries: "0" };
  const env = { ...process.env, ...IDENTITY, ...npm, TSC_FLAGS: "--noCheck" }; // `npm test` checks the types itself.
  const run = promisify(execFile)(process.execPath, [resolve(`dist/release/${name}.js`), ...args], { cwd, env });
  return run.then(
    (ended) => ({ code: 0, ...ended }),
    (failed: unknown) => failed as Ended,
  );
}
