/**
 * Claims the data folder of an engine: it must exist, be writable, and belong to one engine. Two servers on the same
 * JetStream store or append-only file destroy it, so the lock is held while the engine lives.
 */

import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { makeFolder } from "../shared/io/make-folder.ts";
import { folderAdvice } from "../shared/io/system-error.ts";
import { EngineError } from "./engine-error.ts";
import { claimLock, type Lock } from "./pid-lock.ts";

const PROBE_BYTES = 64 * 1024;

export function claimDataDir(dir: string): Lock {
  ensureWritable(dir);
  const claim = claimLock(join(dir, "engine.lock"));
  if (claim.kind === "claimed") return claim.lock;
  throw new EngineError(
    "data-dir-in-use",
    `the data folder ${dir} is in use by process ${claim.by}. Stop that process, or set COROOM_DATA_DIR to another folder`,
  );
}

/** For a file with passwords: only its owner may read it, even if an earlier version wrote it for all. */
export function writeOwnFile(file: string, text: string): void {
  writeFileSync(file, "", { mode: 0o600 });
  chmodSync(file, 0o600);
  writeFileSync(file, text);
}

function ensureWritable(dir: string): void {
  const probe = join(dir, `.writable-${process.pid}`);
  try {
    makeFolder(dir);
    writeFileSync(probe, Buffer.alloc(PROBE_BYTES)); // A full disk still takes the names of empty files.
    rmSync(probe);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    throw new EngineError(
      "data-dir-unwritable",
      `the data folder ${dir} cannot be written (${String(error.code)}). ${folderAdvice(error)}, or set COROOM_DATA_DIR to another folder`,
      { cause: error },
    );
  }
}
