/**
 * Where each participant of a room points, and when each cursor last moved. A client whose view has moved receives the
 * cursors that moved out of its view meanwhile.
 */

import { LazyMap } from "../../shared/collections/lazy-map.ts";
import { CURSOR, type ParticipantNumber, type PresenceDelta, type PresenceState } from "../../shared/wire/presence.ts";
import { decodePoint, type Point } from "../../shared/wire/positions.ts";

/** `point`: undefined when the participant removed its cursor. */
type Cursor = { readonly value: Uint8Array; readonly point: Point | undefined; readonly moved: number };

export class Cursors {
  /** In the order of the last move: the newest last. */
  readonly #cursors = new LazyMap<ParticipantNumber, Cursor>();
  #version = 0;

  /** Increases with each delta. */
  get version(): number {
    return this.#version;
  }

  at(number: ParticipantNumber): Point | undefined {
    return this.#cursors.get(number)?.point;
  }

  receiveDelta({ snapshot, gone, states }: PresenceDelta): void {
    this.#version += 1;
    if (snapshot) this.#cursors.clear();
    for (const number of gone) this.#cursors.delete(number);
    for (const { number, fields } of states) {
      const value = fields.find(({ name }) => name === CURSOR)?.value;
      if (value === undefined) continue;
      this.#cursors.delete(number);
      this.#cursors.set(number, { value: value.slice(), point: decodePoint(value), moved: this.#version });
    }
  }

  /** All cursors that moved after the version. */
  since(version: number): PresenceState[] {
    const states: PresenceState[] = [];
    for (const [number, { value, moved }] of this.#cursors) if (moved > version) states.push({ number, fields: [{ name: CURSOR, value }] });
    return states;
  }
}
