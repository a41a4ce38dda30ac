/**
 * `npm run build:docs`: builds the documentation site, unless nothing that it is made of has changed since the last build.
 * A build takes seconds, and `npm start` runs this each time.
 */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const SDK = "docs/sdk";
const DIST = "docs/.vitepress/dist";
const NOT_READ = ["node_modules", "dist", "cache", ".git", ".coroom"];
const SDK_SOURCE = /^(client|react|shared)\/.*(?<!\.test)\.ts$|^(client|react)\/package\.json$|^docs\/sdk-reference\.js$/;

/** @param {string} folder @returns {string[]} */
function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !NOT_READ.includes(name))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(folder, entry.name)) : [join(folder, entry.name)]));
}

/**
 * Calls `build` if the content of these files differs from that of the last call, which a file in `target` names.
 * @param {string} target @param {(file: string) => boolean} isRead @param {() => Promise<void>} build
 */
async function unlessBuilt(target, isRead, build) {
  const mark = join(target, "built-from");
  const hash = createHash("sha256");
  for (const file of filesUnder(".").filter(isRead).toSorted()) hash.update(`${file}\n`).update(readFileSync(file));
  const from = hash.digest("hex");
  if (existsSync(mark) && readFileSync(mark, "utf8") === from) return;
  await build();
  writeFileSync(mark, from);
}

await unlessBuilt(
  SDK,
  (file) => SDK_SOURCE.test(file) || file === "package-lock.json",
  async () => {
    const { entryPoints, writeSdkReference } = await import("./sdk-reference.js"); // Takes a second to load.
    await writeSdkReference(entryPoints(), SDK);
  },
);
await unlessBuilt(
  DIST,
  (file) => file.endsWith(".md") || file.startsWith("docs/.vitepress/") || file === "package-lock.json",
  async () => {
    const { build } = await import("vitepress"); // Takes half a second to load.
    await build("docs");
  },
);
