/**
 * The log file of an engine. The engine holds it open and appends, so the file keeps its name: its end goes to a second
 * file, and the log is cut to nothing. The engine's next line is then its first one.
 */

import { closeSync, openSync, readSync, statSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { setInterval } from "node:timers/promises";

import { isErrno } from "../shared/io/system-error.ts";

/** A log above this size is cut. Its last bytes, as many, stay in the file with `.1` after its name. */
export const ENGINE_LOG_BYTES_MAX = 8 * 1024 ** 2;
const CHECK_MS = 1_000;
const BYTES_SHOWN = 16 * 1024;

/** Cuts the log whenever it is too large, until the signal. */
export async function keepLogSmall(file: string, signal: AbortSignal): Promise<void> {
  try {
    for await (const _ of setInterval(CHECK_MS, undefined, { signal, ref: false })) await cutLog(file);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Lines that the engine writes between the copy and the cut are lost. On a full disk the log stays as it is. */
export async function cutLog(file: string): Promise<void> {
  if (sizeOfLog(file) <= ENGINE_LOG_BYTES_MAX) return;
  try {
    const log = await open(file, "r+");
    try {
      const { size } = await log.stat();
      const bytes = Buffer.alloc(ENGINE_LOG_BYTES_MAX);
      const { bytesRead } = await log.read(bytes, 0, bytes.byteLength, Math.max(0, size - bytes.byteLength));
      await writeFile(`${file}.1`, bytes.subarray(0, bytesRead));
      await log.truncate(0);
    } finally {
      await log.close();
    }
  } catch (error) {
    if (!isErrno(error, "ENOENT", "ENOSPC", "EDQUOT")) throw error; // ENOENT: the data folder was removed.
  }
}

/** The last lines after `from`, or of the whole log if it was cut since. The log of many starts may be too large to be read completely. */
export function endOfLog(file: string, from: number): string {
  const size = sizeOfLog(file);
  const bytes = Buffer.alloc(Math.min(size < from ? size : size - from, BYTES_SHOWN));
  const log = openSync(file, "r");
  readSync(log, bytes, 0, bytes.byteLength, size - bytes.byteLength);
  closeSync(log);
  return bytes.toString().trim().split("\n").slice(-8).join("\n  ");
}

export function sizeOfLog(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
