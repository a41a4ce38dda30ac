/**
 * The folder an engine keeps its data in: there, writable, and ours alone. Two servers on one
 * JetStream store or append-only file destroy it, so the lock is held as long as the engine lives.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "./engine-error.ts";
import { makeFolder } from "./make-folder.ts";
import { claimLock, type Lock } from "./pid-lock.ts";

export function claimDataDir(dir: string): Lock {
  ensureWritable(dir);
  const claim = claimLock(join(dir, "engine.lock"));
  if (claim.kind === "claimed") return claim.lock;
  throw new EngineError(
    "data-dir-in-use",
    `the data folder ${dir} is in use by process ${claim.by}: stop that Coroom first, or set COROOM_DATA_DIR to another folder`,
  );
}

function ensureWritable(dir: string): void {
  const probe = join(dir, `.writable-${process.pid}`);
  try {
    makeFolder(dir);
    writeFileSync(probe, "");
    rmSync(probe);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    throw new EngineError(
      "data-dir-unwritable",
      `the data folder ${dir} cannot be written (${String(error.code)}): make it writable for this user, or set COROOM_DATA_DIR to another folder`,
      { cause: error },
    );
  }
}
