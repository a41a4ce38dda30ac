/**
 * `npm run verify-uws [-- --from URL]`: compares the installed binaries of uWebSockets.js with those in upstream's tagged
 * release. A third party republishes them on npm, and a hash in the lock file shows only that a package has not changed
 * since it was locked. Exits with 1 if a binary differs, and with 2 if upstream is not reachable.
 */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const UPSTREAM = "https://raw.githubusercontent.com/uNetworking/uWebSockets.js";
const ANSWER_MS_MAX = 60_000;
const DIFFERS = 1;
const NOT_REACHABLE = 2;

const { from } = parseArgs({ options: { from: { type: "string", default: UPSTREAM } } }).values;

/** npm installs the builds of this platform and this version of Node only. */
const build = `@uwsjs/${process.platform}-${process.arch}-${process.versions.node.split(".")[0]}`;
const folders = ["node_modules", "node_modules/uWebSockets.js/node_modules"].map((folder) => join(folder, build));

for (const folder of folders.filter((path) => existsSync(path))) {
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  const url = `${from}/v${version.replace(/\.\d+$/, ".0")}/uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const [status, text] = await compared(readFileSync(join(folder, "uws.node")), url);
  console.log(`${folder} ${version}: ${text}`);
  process.exitCode = Math.max(Number(process.exitCode ?? 0), status);
}
if (!folders.some((path) => existsSync(path))) {
  console.error(`${build} is not installed. Run npm ci first.`);
  process.exitCode = NOT_REACHABLE;
}

async function compared(installed: Uint8Array, url: string): Promise<readonly [status: number, text: string]> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    if (!answer.ok) return [NOT_REACHABLE, `not compared, because ${url} answers ${answer.status}`];
    const [here, there] = [sha256(installed), sha256(new Uint8Array(await answer.arrayBuffer()))];
    if (here === there) return [0, `as upstream's release (SHA-256 ${here})`];
    return [DIFFERS, `DIFFERS from ${url}: SHA-256 ${here} is installed, upstream has ${there}. Do not run this build.`];
  } catch (error) {
    const { cause, message } = error as Error;
    return [NOT_REACHABLE, `not compared, because ${url} is not reachable (${cause instanceof Error ? cause.message : message})`];
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
