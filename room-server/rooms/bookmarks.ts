/**
 * Where in the log the answers ended of those who are expected to ask on, so that they are read on for from there: several
 * of a gateway's may go the same way side by side. Bounded: who asks without a bookmark is only read for from further back.
 * Rules BKM1 and BKM2.
 */

import type { GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";

/** The record that the answer ended with, what had been read before it, and how long whoever asks on has to wait. */
export type Bookmark = { readonly streamSeq: number; readonly readBytes: number; readonly restUntil: Millis };
/** Who asks on, and behind which seq. */
export type Place = { readonly gateway: GatewayId; readonly room: RoomKey; readonly seq: Seq };

export class Bookmarks {
  readonly #max: number;
  /** The oldest first. */
  readonly #kept = new Map<string, Bookmark>();

  constructor(max: number) {
    this.#max = max;
  }

  keep(place: Place, bookmark: Bookmark): void {
    this.forget(place);
    this.#kept.set(nameOf(place), bookmark);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size > this.#max) this.#kept.delete(oldest);
  }

  find(place: Place): Bookmark | undefined {
    return this.#kept.get(nameOf(place));
  }

  /** It led nowhere: the log may have been trimmed since, or have lost its end. */
  forget(place: Place): void {
    this.#kept.delete(nameOf(place));
  }
}

function nameOf({ gateway, room, seq }: Place): string {
  return [gateway, room, seq].join(" ");
}
