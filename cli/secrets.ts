/**
 * The secrets of a local system: made once, kept in the data folder, readable by their owner only. So tokens
 * printed by `coroom token` work with the system that `npm start` runs, and nothing is open by default.
 * A deployment sets them instead.
 */

import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { z } from "zod";

const Secrets = z.object({ jwtSecret: z.string().min(32), roomSecret: z.string().min(32), internalSecret: z.string().min(32) });
export type Secrets = z.infer<typeof Secrets>;

/** Throws when the folder cannot be written or the file was damaged. */
export function localSecrets(dataDir: string): Secrets {
  const file = join(dataDir, "secrets.json");
  mkdirSync(dataDir, { recursive: true });
  createOnce(file, JSON.stringify({ jwtSecret: secret(), roomSecret: secret(), internalSecret: secret() }, null, 2));
  return Secrets.parse(JSON.parse(readFileSync(file, "utf8")));
}

/** Links a finished file into place: of two processes that start at once, one's secrets hold for both. */
function createOnce(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(draft);
  }
}

function secret(): string {
  return randomBytes(32).toString("base64url");
}
