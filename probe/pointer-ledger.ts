/**
 * Records the pointers of one room: where each of the two participants points, since when, and when the other sees it.
 * Presence is state, so a position that a newer one replaces counts as overtaken.
 */

import type { Millis } from "../shared/ids.ts";
import type { Point } from "../shared/wire/positions.ts";
import type { Finding } from "./findings.ts";
import type { ParticipantIndex } from "./edit-ledger.ts";

type Mark = { readonly point: Point; readonly at: Millis };

/** Side of the square that pointers stay in, and that each of the pair shows as its viewport. */
export const SIDE = 64;
const POINTS = SIDE ** 2;

/** Half of the possible points, so that no point is used twice at a time. */
const MARKS_MAX = 100;

export class PointerLedger {
  readonly #marks = new Map<ParticipantIndex, Mark[]>();
  #points = 0;

  /** Chooses where the participant points now: away from its recent points. */
  point(participant: ParticipantIndex, now: Millis, findings: Finding[]): Point {
    const place = (this.#points += 1) % POINTS;
    const point = { x: place % SIDE, y: Math.floor(place / SIDE) };
    const marks = this.#marksOf(participant);
    marks.push({ point, at: now });
    if (marks.length > MARKS_MAX) overtake(marks.splice(0, 1), findings);
    return point;
  }

  /** The other of the pair sees the participant's pointer there. */
  receiveSeen(participant: ParticipantIndex, point: Point, now: Millis, findings: Finding[]): void {
    const marks = this.#marksOf(participant);
    const index = marks.findIndex((mark) => mark.point.x === point.x && mark.point.y === point.y);
    if (index < 0) return;
    overtake(marks.slice(0, index), findings);
    findings.push({ kind: "presence-seen", ms: now - marks[index]!.at });
    marks.splice(0, index + 1);
  }

  /** One of the pair left the room. Points from that time would measure the reconnect, not presence. */
  receiveWent(): void {
    this.#marks.clear();
  }

  #marksOf(participant: ParticipantIndex): Mark[] {
    const marks = this.#marks.get(participant) ?? [];
    this.#marks.set(participant, marks);
    return marks;
  }
}

function overtake(marks: readonly Mark[], findings: Finding[]): void {
  for (const _ of marks) findings.push({ kind: "presence-overtaken" });
}
