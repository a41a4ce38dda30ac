/**
 * One room's pointers: where each of the pair points, and since when, until the other sees it. Presence is state: what
 * something newer overtakes need not be shown, and is counted as overtaken.
 */

import type { Millis } from "../shared/ids.ts";
import type { Point } from "../shared/wire/positions.ts";
import type { Finding } from "./findings.ts";
import type { ParticipantIndex } from "./edit-ledger.ts";

type Mark = { readonly point: Point; readonly at: Millis };

/** Pointers stay within a square of so many units, which each of the pair looks at. */
export const SIDE = 64;
const POINTS = SIDE ** 2;

/** Half of what points there are, so that none stands for two. */
const MARKS_MAX = 100;

export class PointerLedger {
  readonly #marks = new Map<ParticipantIndex, Mark[]>();
  #points = 0;

  /** Where the participant is to point now: nowhere near where it lately did. */
  point(participant: ParticipantIndex, now: Millis, findings: Finding[]): Point {
    const place = (this.#points += 1) % POINTS;
    const point = { x: place % SIDE, y: Math.floor(place / SIDE) };
    const marks = this.#marksOf(participant);
    marks.push({ point, at: now });
    if (marks.length > MARKS_MAX) overtake(marks.splice(0, 1), findings);
    return point;
  }

  /** The other of the pair sees the participant there. */
  receiveSeen(participant: ParticipantIndex, point: Point, now: Millis, findings: Finding[]): void {
    const marks = this.#marksOf(participant);
    const index = marks.findIndex((mark) => mark.point.x === point.x && mark.point.y === point.y);
    if (index < 0) return;
    overtake(marks.slice(0, index), findings);
    findings.push({ kind: "presence-seen", ms: now - marks[index]!.at });
    marks.splice(0, index + 1);
  }

  /** One of the pair is out of the room: what was shown meanwhile tells of the way back, not of the way of presence. */
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
