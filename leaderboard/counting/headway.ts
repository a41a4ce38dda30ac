/** How far a pass has come on both streams: what was handed over, what is counted for sure, and what of it is told. */

import type { UnixMillis } from "../../shared/ids.ts";
import { type Source, SOURCES } from "./instants.ts";

export type Ends = Readonly<Record<Source, number>>;

export class Headway {
  readonly #received: Record<Source, number>;
  /** Where the streams ended at `asked`: once all up to there is counted, so is all that they took before `asked`. */
  #target: { readonly ends: Ends; readonly asked: UnixMillis } | undefined;
  #through: UnixMillis;
  #told = 0 as UnixMillis;
  #hasCaughtUp = false;

  /** `through`: how far the pass before had come, for those who ask meanwhile. */
  constructor(received: Ends, through: UnixMillis) {
    this.#received = { ...received };
    this.#through = through;
  }

  /** The last stream sequences handed to a room. */
  get received(): Ends {
    return { ...this.#received };
  }

  /** All that the streams took before it is counted. 0: nobody knows. */
  get through(): UnixMillis {
    return this.#through;
  }

  /** As `through`, but with the rooms' totals told to the tenants' boards as well. */
  get told(): UnixMillis {
    return this.#told;
  }

  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  /** Goes on from how far whoever counted before said to have come. */
  resume(last: { readonly through: UnixMillis } | undefined): void {
    if (last !== undefined && last.through > this.#through) this.#through = last.through;
  }

  receive(source: Source, streamSeq: number): void {
    this.#received[source] = Math.max(this.#received[source], streamSeq);
  }

  /**
   * The streams were asked for their ends after `asked`. Of two answers the lower counts: what was removed from a stream
   * between them never comes.
   */
  aimAt(ends: Ends, asked: UnixMillis): void {
    const target = this.#target ?? { ends, asked };
    const lower = (source: Source): number => Math.min(target.ends[source], ends[source]);
    this.#target = { asked: target.asked, ends: { edits: lower("edits"), activities: lower("activities") } };
  }

  /** All that was received up to `counted` is counted. True: for the first time nothing is left to catch up with. */
  count(counted: Ends): boolean {
    const target = this.#target;
    if (target === undefined || SOURCES.some((source) => counted[source] < target.ends[source])) return false;
    this.#through = target.asked;
    this.#target = undefined;
    const isFirst = !this.#hasCaughtUp;
    this.#hasCaughtUp = true;
    return isFirst;
  }

  /** All totals were told after it was counted so far. */
  tell(through: UnixMillis): void {
    this.#told = through;
  }
}
