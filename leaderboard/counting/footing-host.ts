/**
 * What a pass may begin on: everything below its floor is in checkpoints, and in Redis if the word is that was said
 * afterwards. So whoever finds that word, or a later one, has nothing below the floor to look at.
 */

import type { Said } from "../../shared/lease.ts";
import type { Beat, Progress, Word } from "../ports.ts";
import type { Ends } from "./headway.ts";
import { SOURCES } from "./instants.ts";

/** `edits`: the stream sequence. `said`: undefined where nobody knows of a word. */
export type Floor = { readonly edits: number; readonly said: Said | undefined };

export class Footing {
  readonly #partition: number;
  readonly #progress: Progress;
  readonly #onFloor: (floor: Floor) => void;
  #floor: Floor;
  /** In checkpoints. */
  #covered: Ends;
  /** And in Redis, by a later word. */
  #kept: Ends;

  constructor(partition: number, floor: Floor, progress: Progress, onFloor: (floor: Floor) => void) {
    this.#partition = partition;
    this.#floor = floor;
    this.#progress = progress;
    this.#onFloor = onFloor;
    this.#covered = this.#kept = { edits: floor.edits, activities: 0 };
  }

  get floor(): number {
    return this.#floor.edits;
  }

  get kept(): Ends {
    return this.#kept;
  }

  /** All up to there is in checkpoints. It counts once a word was said after it. */
  cover(covered: Ends): void {
    const [edits, activities] = SOURCES.map((source) => Math.max(this.#covered[source], covered[source])) as [number, number];
    this.#covered = { edits, activities };
  }

  async say(word: Word): Promise<Beat["kind"]> {
    const covered = this.#covered;
    const beat = await this.#progress.beat(this.#partition, word, this.#floor.said);
    if (beat.kind !== "lost") this.#keep(beat.kind === "kept" ? covered : this.#kept, beat.said);
    return beat.kind;
  }

  /** All that checkpoints had is back. */
  async begin(word: Word): Promise<void> {
    this.#keep(this.#kept, await this.#progress.begin(this.#partition, word));
  }

  #keep(kept: Ends, said: Said): void {
    this.#kept = kept;
    this.#floor = { edits: kept.edits, said };
    this.#onFloor(this.#floor);
  }
}
