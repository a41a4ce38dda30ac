/**
 * The matching lines of a log that a process continues to write. A call reads only what is new: a test that polls fifty
 * times a second would otherwise read hours of logs each time, and block its own process.
 */

import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";

const NEWLINE = 0x0a;
const CHUNK_BYTES = 64 * 1024;

export class GrowingLog {
  readonly #file: string;
  readonly #matters: (line: string) => boolean;
  #read: number;
  /** The incomplete last line. */
  #begun = Buffer.alloc(0);
  readonly #lines: string[] = [];

  /** `from`: the bytes before this position are skipped. */
  constructor(file: string, matters: (line: string) => boolean, from = 0) {
    this.#file = file;
    this.#matters = matters;
    this.#read = from;
  }

  /** All complete matching lines so far. */
  lines(): readonly string[] {
    if (sizeOf(this.#file) > this.#read) this.#readOn();
    return this.#lines;
  }

  #readOn(): void {
    const file = openSync(this.#file, "r");
    try {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      for (let bytes = -1; bytes !== 0;) {
        bytes = readSync(file, chunk, 0, CHUNK_BYTES, this.#read);
        this.#read += bytes;
        this.#take(chunk.subarray(0, bytes));
      }
    } finally {
      closeSync(file);
    }
  }

  #take(bytes: Buffer): void {
    const text = Buffer.concat([this.#begun, bytes]);
    const completeBytes = text.lastIndexOf(NEWLINE) + 1;
    this.#begun = text.subarray(completeBytes);
    this.#lines.push(
      ...text
        .subarray(0, completeBytes)
        .toString("utf8")
        .split("\n")
        .filter((line) => line !== "" && this.#matters(line)),
    );
  }
}

/** 0 if the file does not exist yet. */
export function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}
