/**
 * `npm run audit`: known vulnerabilities in what Coroom needs in production. Exits with 1 if there are any. A registry
 * without an audit endpoint, such as a mirror, is reported and fails nothing.
 */

import { spawnSync } from "node:child_process";

/** Statuses of registries for an address that they do not serve. */
const NO_ENDPOINT = [403, 404, 405, 501];

type Report = {
  readonly message?: string;
  readonly statusCode?: number;
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string; readonly range: string }>>;
};

const { stdout, error } = spawnSync("npm", ["audit", "--omit", "dev", "--json"], { encoding: "utf8", maxBuffer: 64 * 2 ** 20 });
if (error !== undefined) throw new Error("cannot run npm audit: npm is not on the PATH", { cause: error });
const { message = "", statusCode = 0, vulnerabilities } = JSON.parse(stdout) as Report;

if (vulnerabilities !== undefined) {
  const found = Object.entries(vulnerabilities);
  for (const [name, { severity, range }] of found) console.log(`${severity}: ${name} ${range}`);
  console.log(
    found.length === 0 ? "npm audit: no known vulnerabilities in production dependencies" : "npm audit: see `npm audit --omit dev`",
  );
  process.exitCode = found.length === 0 ? 0 : 1;
} else if (NO_ENDPOINT.includes(statusCode)) {
  console.log(`npm audit: skipped, because the registry has no audit endpoint (${message})`);
} else {
  console.error(`npm audit failed: ${message || stdout}`);
  process.exitCode = 1;
}
