/** Which version this is, as package.json says: beside the sources' folder, or above what was built of them. */

import { existsSync, readFileSync } from "node:fs";

import { z } from "zod";

const Package = z.object({ version: z.string() });

export function version(): string {
  const file = ["../package.json", "../../package.json"].map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (file === undefined) throw new Error("there is no package.json beside Coroom");
  return Package.parse(JSON.parse(readFileSync(file, "utf8"))).version;
}
