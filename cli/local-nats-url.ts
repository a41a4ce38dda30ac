/** Where the local system's nats-server listens, kept beside its data for commands in other terminals. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { withoutSecrets } from "../shared/io/nats-address.ts";

export const DEFAULT_NATS_URL = "nats://127.0.0.1:4222";
const FILE = "nats-url";

/** Without its secrets: who may read the folder need not be who may use NATS. */
export function rememberNatsUrl(dataDir: string, natsUrl: string): void {
  writeFileSync(join(dataDir, FILE), withoutSecrets(natsUrl));
}

/** The local system's, if one was ever started with these data; else where NATS listens by itself. */
export function localNatsUrl(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, FILE), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return DEFAULT_NATS_URL;
    throw error;
  }
}
