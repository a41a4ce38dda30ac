/**
 * Where everybody in a room points, and when each last moved: what somebody is told whose view has moved on, and who
 * was not told of what happened out of view meanwhile.
 */

import { SeldomMap } from "../../shared/seldom.ts";
import { CURSOR, type ParticipantNumber, type PresenceNews, type PresenceState } from "../../shared/wire/presence.ts";
import { decodePoint, type Point } from "../../shared/wire/positions.ts";

/** `point` is undefined where the cursor was taken back. */
type Cursor = { readonly value: Uint8Array; readonly point: Point | undefined; readonly moved: number };

export class Cursors {
  /** Those that moved last come last. */
  readonly #cursors = new SeldomMap<ParticipantNumber, Cursor>();
  #version = 0;

  /** Goes up with all news. */
  get version(): number {
    return this.#version;
  }

  at(number: ParticipantNumber): Point | undefined {
    return this.#cursors.get(number)?.point;
  }

  receiveNews({ whole, gone, states }: PresenceNews): void {
    this.#version += 1;
    if (whole) this.#cursors.clear();
    for (const number of gone) this.#cursors.delete(number);
    for (const { number, fields } of states) {
      const value = fields.find(({ name }) => name === CURSOR)?.value;
      if (value === undefined) continue;
      this.#cursors.delete(number);
      this.#cursors.set(number, { value: value.slice(), point: decodePoint(value), moved: this.#version });
    }
  }

  /** Every cursor that moved after that version. */
  since(version: number): PresenceState[] {
    const states: PresenceState[] = [];
    for (const [number, { value, moved }] of this.#cursors) if (moved > version) states.push({ number, fields: [{ name: CURSOR, value }] });
    return states;
  }
}
