/**
 * Claims the data folder of an engine: it must exist, be writable, and belong to one engine. Two servers on the same
 * JetStream store or append-only file destroy it, so the lock is held while the engine lives.
 */
import { rmSync, writeFileSync, mkdirSync } from "node:fs";
import { join, dirname } from "node:path";
import { EngineError } from "./engine-error.ts";
import { claimLock, type Lock } from "./pid-lock.ts";
import { isErrno } from "../shared/io/system-error.ts";

export function claimDataDir(dir: string): Lock {
  ensureWritable(dir);
  const claim = claimLock(join(dir, "engine.lock"));
  if (claim.kind === "claimed") return claim.lock;
  throw new EngineError(
    "data-dir-in-use",
    `the data folder ${dir} is in use by process ${claim.by}. Stop that process, or set COROOM_DATA_DIR to another folder`,
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
      `the data folder ${dir} cannot be written (${String(error.code)}). Make it writable for this user, or set COROOM_DATA_DIR to another folder`,
      { cause: error },
    );
  }
}

/**
 * Creates a folder and its parents. Node's recursive mkdir never returns when a file system answers "no such entry" for
 * a child of an existing folder, as /proc does.
 */
export function makeFolder(folder: string): void {
  try {
    makeOne(folder);
  } catch (error) {
    if (!isErrno(error, "ENOENT") || dirname(folder) === folder) throw error;
    makeFolder(dirname(folder));
    makeOne(folder);
  }
}

function makeOne(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  }
}
