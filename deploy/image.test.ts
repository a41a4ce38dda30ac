/** The build context of `deploy/Dockerfile` is complete, and its image contains every file that the roles open. */

import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { envName, readableSettings } from "../shared/settings/settings.ts";
import { serveHealth } from "../cli/health.ts";
import { startSettings } from "../cli/settings.ts";
import { claimFreePorts } from "../engines/free-port.ts";
import { runProgram } from "../engines/run-program.ts";
import { buildStage, finalStage, imageEnvironment } from "./image.ts";

const MS_MAX = 30_000;
const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly scripts: Readonly<Record<string, string>> };
const { include } = JSON.parse(readFileSync("tsconfig.build.json", "utf8")) as { readonly include: readonly string[] };

const patterns = readFileSync(".dockerignore", "utf8").trim().split("\n");

/** Supports the two kinds of patterns in .dockerignore: a path from the root, and a name in any folder. */
function isLeftOut(path: string): boolean {
  return patterns.some((pattern) =>
    pattern.startsWith("**/") ? path.split("/").includes(pattern.slice(3)) : path === pattern || path.startsWith(`${pattern}/`),
  );
}

test("[DEP2] the build context contains every file that the build reads, and no secrets or build output", () => {
  const folders = [...include.map((pattern) => pattern.slice(0, pattern.indexOf("/**"))), "console"];
  const read = [...buildStage.copies.flatMap(({ sources }) => sources).filter((path) => path !== "."), ...folders.flatMap(filesUnder)];
  expect(read.length).toBeGreaterThan(500);
  expect(read.filter((path) => !existsSync(path) || isLeftOut(path))).toEqual([]);
  const kept = [
    "deploy/.env",
    ".env",
    ".git/config",
    ".coroom/data/secrets.json",
    "node_modules/ws/index.js",
    "client/dist/client/index.js",
  ];
  expect(kept.filter((path) => !isLeftOut(path))).toEqual([]);
});

test("[DEP3] the image contains every module that a role loads, and every file that a module names", async () => {
  const modules = reachedFrom("cli/main.ts");
  expect(modules.size).toBeGreaterThan(300);
  const removed = [.../rm -rf (?<paths>[^&]+)/.exec(buildStage.text)!.groups!["paths"]!.matchAll(/dist\/(\S+)/g)].map(
    ([, folder]) => `${folder}/`,
  );
  expect([...modules].filter((file) => removed.some((folder) => file.startsWith(folder)))).toEqual([]);
  const beside = await copiedByTheBuild();
  const named = [...modules].flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/"((?:[\w-]+\/)*[\w-]+\.lua|(?:[\w-]+\/)+[\w-]*openapi\.json)"/g)].map(([, path]) =>
      path!.endsWith(".lua") ? join(dirname(file), path!) : path!,
    ),
  );
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((path) => !existsSync(path) || !beside.includes(path))).toEqual([]);
});

test("[DEP4] the last stage copies the build output, its packages, the console and package.json", () => {
  const copied = finalStage.copies.flatMap(({ fromBuild, sources }) => (fromBuild ? sources : []));
  expect(copied.map((path) => path.replace("/coroom/", "")).sort()).toEqual(["console/dist", "dist", "node_modules", "package.json"]);
  const build = ["npm run build:server", "node dist/cli/main.js --help > /dev/null", "npm run build:client", "npm run build:react"];
  expect(scripts["build"]).toBe([...build, "npm run build:console"].join(" && "));
  expect(finalStage.text).toContain("USER node");
  const known = readableSettings(startSettings).map(([name]) => envName(name));
  expect(Object.keys(imageEnvironment()).filter((name) => !known.includes(name))).toEqual(["NODE_ENV"]);
});

test("[DEP5] the image's health check accepts only a process whose roles run", async () => {
  const check = JSON.parse(/CMD (\["bash".*\])/.exec(finalStage.text)![1]!) as [string, ...string[]];
  const [port] = await claimFreePorts(1, "127.0.0.1");
  const exit = (): Promise<number | null> =>
    new Promise((resolve, reject) => {
      const [program, ...args] = check;
      const asked = spawn(program, args, { env: { ...process.env, COROOM_HEALTH_PORT: String(port) }, stdio: "ignore", timeout: MS_MAX });
      asked.once("error", reject);
      asked.once("exit", resolve);
    });
  expect(await exit()).not.toBe(0);
  const health = await serveHealth({ healthHost: "127.0.0.1", healthPort: port! }, new Registry());
  try {
    expect(await exit()).not.toBe(0);
    health.ready();
    expect(await exit()).toBe(0);
    health.stopping();
    expect(await exit()).not.toBe(0);
  } finally {
    await health.stop();
  }
});

/** Files that the build copies beside the compiled files. Runs the build's own commands with a `cp` that only prints its sources. */
async function copiedByTheBuild(): Promise<readonly string[]> {
  const [compile, ...rest] = scripts["build:server"]!.split(" && ");
  expect(compile).toMatch(/^tsc /);
  const output = await runProgram("bash", ["-c", `cp() { printf '%s\\n' "\${@:1:$#-1}"; }; ${rest.join(" && ")}`], { msMax: MS_MAX });
  return output.trim().split("\n");
}

/** Files that are reached by imports, and files that start a thread. */
function reachedFrom(entry: string): ReadonlySet<string> {
  const reached = new Set<string>([entry]);
  for (const file of reached) {
    const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    const imported = [...text.matchAll(/^(?:import|export)\b(?! type)[^;]*?"(\.[^"]+\.ts)";|\bimport\("(\.[^"]+\.ts)"\)/gm)].map(
      ([, one, other]) => one ?? other!,
    );
    const threads = [...text.matchAll(/"(\.\/[\w/-]+)\.js"/g)].map(([, path]) => `${path}.ts`);
    for (const path of [...imported, ...threads]) reached.add(normalize(join(dirname(file), path)));
  }
  return reached;
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== "dist" && name !== "node_modules")
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
}
