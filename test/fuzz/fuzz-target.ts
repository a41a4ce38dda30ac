/**
 * A fuzz target is a module with the two functions below. `test/fuzz/corpus/NAME.hex` holds inputs that reach different
 * code, one per line in hex, and each input that once failed, with its reason after a `#`.
 */

import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

/** The targets are in this file's folder. The file runs compiled, or from source in tests. */
const EXTENSION = extname(import.meta.url);

export type FuzzTarget = {
  /** Valid inputs, and hostile inputs that were written by hand. */
  readonly seeds: () => readonly Uint8Array[];
  /** Throws if the input breaks a guarantee. False: the code refused the input. */
  readonly fuzz: (input: Uint8Array) => boolean;
};

export const TARGET_NAMES = ["bus-messages", "http-requests", "wire-frames", "y-websocket", "yjs-updates"] as const;

/** Loads one target only, because V8 counts all loaded code, and reading more code takes longer. */
export async function loadTarget(name: string): Promise<FuzzTarget> {
  return (await import(new URL(`${name}${EXTENSION}`, import.meta.url).href)) as FuzzTarget;
}

export function corpusFile(name: string): string {
  return join("test", "fuzz", "corpus", `${name}.hex`);
}

/** Empty if the file does not exist yet. */
export function corpusLines(name: string): string[] {
  try {
    return readFileSync(corpusFile(name), "utf8").split("\n").filter(Boolean);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function inputOf(line: string): Uint8Array {
  return new Uint8Array(Buffer.from(line.replace(/#.*/, "").trim(), "hex"));
}

/** The seeds and the corpus. */
export function allInputs(name: string, { seeds }: FuzzTarget): Uint8Array[] {
  return [...seeds(), ...corpusLines(name).map(inputOf)];
}
