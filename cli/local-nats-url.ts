/** Stores the address of the local nats-server in the data folder, for commands in other terminals. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { roleSecrets } from "./secrets.ts";
import { withoutSecrets } from "../shared/io/nats-address.ts";

export const DEFAULT_NATS_URL = "nats://127.0.0.1:4222";
const FILE = "nats-url";

/** Stores the address without its secrets, because more users may read the folder than may use NATS. */
export function rememberNatsUrl(dataDir: string, natsUrl: string): void {
  writeFileSync(join(dataDir, FILE), withoutSecrets(natsUrl));
}

/** `url`: one address without a user, or several separated by commas. */
export function withUser(url: string, user: string, password: string): string {
  return url.replaceAll("://", `://${encodeURIComponent(user)}:${encodeURIComponent(password)}@`);
}

/** Returns the stored address of the local system with its operator, or NATS's default address. */
export function localNatsUrl(dataDir: string): string {
  try {
    return withUser(readFileSync(join(dataDir, FILE), "utf8"), "operator", roleSecrets(dataDir).nats.operator);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return DEFAULT_NATS_URL;
    throw error;
  }
}
