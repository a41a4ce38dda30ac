/**
 * `npm run build:docs`: builds the documentation site, unless nothing that it is made of has changed since the last build.
 * A build takes seconds, and `npm start` runs this each time.
 */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const DIST = "docs/.vitepress/dist";
const MARK = join(DIST, "built-from");
const NOT_READ = ["node_modules", "dist", "cache", ".git", ".coroom"];

/** @param {string} folder @returns {string[]} */
function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !NOT_READ.includes(name))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(folder, entry.name)) : [join(folder, entry.name)]));
}

const hash = createHash("sha256");
const read = filesUnder(".").filter((file) => file.endsWith(".md") || file.startsWith("docs/.vitepress/") || file === "package-lock.json");
for (const file of read.toSorted()) hash.update(`${file}\n`).update(readFileSync(file));
const from = hash.digest("hex");

if (!existsSync(MARK) || readFileSync(MARK, "utf8") !== from) {
  const { build } = await import("vitepress"); // Takes half a second to load.
  await build("docs");
  writeFileSync(MARK, from);
}
