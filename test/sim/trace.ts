/** The trace of a run: its last lines as text for people, and a hash of all events, which shows whether two runs are equal. */

import type { RoomKey } from "../../shared/ids.ts";

type Line = { readonly at: number; readonly room: RoomKey | undefined; readonly text: string };

const LINES_MAX = 4_000;

export class Trace {
  /** Also keeps a line for each message. This does not change the run. */
  readonly #verbose: boolean;
  #lines: Line[] = [];
  #at = 0;
  #hash = 0x811c9dc5;

  constructor({ verbose }: { verbose: boolean }) {
    this.#verbose = verbose;
  }

  /** `at`: milliseconds since the start of the run. */
  step(at: number): void {
    this.#at = at;
    this.#mix(Math.floor(at * 1_000));
  }

  /** Adds a line. Without a room, it concerns all rooms. */
  note(text: string, room?: RoomKey): void {
    this.#keep({ at: this.#at, room, text });
    this.mixText(text);
  }

  detail(describe: () => { text: string; room: RoomKey | undefined }): void {
    if (this.#verbose) this.#keep({ at: this.#at, ...describe() });
  }

  /** Adds text to the hash only. */
  mixText(text: string): void {
    for (let index = 0; index < text.length; index++) this.#mix(text.charCodeAt(index));
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  /** The lines of a room and of all rooms. A very long run keeps only the last lines. */
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
