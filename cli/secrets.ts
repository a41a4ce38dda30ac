/**
 * The secrets of a local system: made once, kept in the data folder, readable by their owner only. So tokens
 * printed by `coroom token` work with the system that `npm start` runs, and nothing is open by default.
 * A deployment sets them instead.
 */

import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { z } from "zod";

import { StartError } from "../shared/start-error.ts";

const Secrets = z.object({ jwtSecret: z.string().min(32), roomSecret: z.string().min(32), internalSecret: z.string().min(32) });
export type Secrets = z.infer<typeof Secrets>;

/** Throws a StartError when the folder cannot be used or the file was damaged. */
export function localSecrets(dataDir: string): Secrets {
  const file = join(dataDir, "secrets.json");
  const secrets = Secrets.safeParse(parseJson(storedIn(dataDir, file)));
  if (!secrets.success)
    throw new StartError(
      `${file} is damaged: put it back, or take it away to have new secrets made; tokens made with the old ones are refused then`,
    );
  return secrets.data;
}

function storedIn(dataDir: string, file: string): string {
  try {
    mkdirSync(dataDir, { recursive: true });
    createOnce(file, JSON.stringify({ jwtSecret: secret(), roomSecret: secret(), internalSecret: secret() }, null, 2));
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause)) throw cause;
    throw new StartError(
      `the data folder ${dataDir} cannot be used (${String(cause.code)}): set COROOM_DATA_DIR to one that can be written`,
      { cause },
    );
  }
}

/** Undefined: it is none. What the parser throws would quote a secret. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
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
