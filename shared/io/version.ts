/** Reads the version from package.json, which is beside the sources or above the compiled files. */

import { existsSync, readFileSync } from "node:fs";

import { z } from "zod";

import { type BusRelease, OWN_BUS } from "../bus/bus-version.ts";

const Package = z.object({ version: z.string() });

export function version(): string {
  const file = ["../../package.json", "../../../package.json"].map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (file === undefined) throw new Error("package.json is missing from the Coroom installation");
  return Package.parse(JSON.parse(readFileSync(file, "utf8"))).version;
}

/** Other processes ignore an announcement with a longer name, such as that of a build with a date and a commit. */
const NAME_LENGTH_MAX = 32;

export function thisRelease(): BusRelease {
  return { release: version().slice(0, NAME_LENGTH_MAX), bus: OWN_BUS };
}
