/**
 * The lines that matter of a log that a process goes on writing. A look reads what is new since the last one: what looks
 * fifty times a second at hours of logs would otherwise read nothing else, and keep its own process from everything.
 */

import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";

const NEWLINE = 0x0a;
const CHUNK_BYTES = 64 * 1024;

export class GrowingLog {
  readonly #file: string;
  readonly #matters: (line: string) => boolean;
  #read: number;
  /** Of the last line, what is there of it. */
  #begun = Buffer.alloc(0);
  readonly #lines: string[] = [];

  /** `from`: the bytes before are passed over. */
  constructor(file: string, matters: (line: string) => boolean, from = 0) {
    this.#file = file;
    this.#matters = matters;
    this.#read = from;
  }

  /** All until now, each once its end is written. */
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
    const whole = text.lastIndexOf(NEWLINE) + 1;
    this.#begun = text.subarray(whole);
    this.#lines.push(
      ...text
        .subarray(0, whole)
        .toString("utf8")
        .split("\n")
        .filter((line) => line !== "" && this.#matters(line)),
    );
  }
}

/** 0 where there is none yet. */
export function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}
