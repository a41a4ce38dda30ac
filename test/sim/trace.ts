/** What happened in a run: the last of it in words, for people, and all of it in a hash, to see whether two runs are the same. */

import type { RoomKey } from "../../shared/ids.ts";

type Line = { readonly at: number; readonly room: RoomKey | undefined; readonly text: string };

const LINES_MAX = 4_000;

export class Trace {
  /** Every message too, for a run that is looked into. It changes nothing of what the run does. */
  readonly #verbose: boolean;
  #lines: Line[] = [];
  #at = 0;
  #hash = 0x811c9dc5;

  constructor({ verbose }: { verbose: boolean }) {
    this.#verbose = verbose;
  }

  /** `at`: milliseconds since the run began. */
  step(at: number): void {
    this.#at = at;
    this.#mix(Math.floor(at * 1_000));
  }

  /** Something worth reading. Without a room: it concerns all of them. */
  note(text: string, room?: RoomKey): void {
    this.#keep({ at: this.#at, room, text });
    this.mixText(text);
  }

  detail(describe: () => { text: string; room: RoomKey | undefined }): void {
    if (this.#verbose) this.#keep({ at: this.#at, ...describe() });
  }

  /** Something that only the hash needs to know. */
  mixText(text: string): void {
    for (let index = 0; index < text.length; index++) this.#mix(text.charCodeAt(index));
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  /** Those of a room, and of what concerns all; of very long runs only the last. */
  lines(room: RoomKey | undefined): string[] {
    const lines = this.#lines.filter((line) => room === undefined || line.room === undefined || line.room === room);
    return lines.map(({ at, text }) => `${(at / 1_000).toFixed(4).padStart(9)}  ${text}`);
  }

  #keep(line: Line): void {
    this.#lines.push(line);
    if (this.#lines.length > 2 * LINES_MAX) this.#lines = this.#lines.slice(-LINES_MAX);
  }

  #mix(number: number): void {
    this.#hash = Math.imul(this.#hash ^ (number | 0), 0x01000193);
  }
}
