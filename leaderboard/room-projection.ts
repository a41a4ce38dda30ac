/**
 * One room's log turned into points. Takes records in order, drops what is counted already, and gathers the
 * rest into batches that end where an hour does, so that all edits of a batch lie in the same windows. How
 * the edits fall into batches changes nothing in the boards.
 */

import { assert } from "../shared/assert.ts";
import { epochOf, type EditsRecord, headOf, type LogRecord } from "../shared/bus/record.ts";
import type { Seq, UnixMillis, UserId } from "../shared/ids.ts";
import type { Applied, Award, Batch, MinuteUse } from "./board.ts";
import type { Role } from "./keys.ts";
import { BOARDS_OF, MinuteCap, type ScoringOptions, worthOf } from "./scoring.ts";
import { type Window, windowsAt } from "./windows.ts";

/** A batch is one call of a script, whose arguments are bounded. */
export const BATCH_USERS_MAX = 500;

/** `missing`: edits before this record that the log has lost uncounted. */
export type Received = { readonly kind: "known" } | { readonly kind: "counted"; readonly missing: number };

type Draft = {
  readonly after: Seq;
  readonly windows: readonly Window[];
  readonly awards: Map<Role, Map<UserId, { points: number; reachedAt: number }>>;
  readonly users: Set<UserId>;
  applied: Applied;
  edits: number;
  minute: number;
  minuteHasBegun: boolean;
  minutePoints: Map<UserId, number>;
};

export class RoomProjection {
  readonly #options: ScoringOptions;
  readonly #cap: MinuteCap;
  readonly #drafts: Draft[] = [];
  #applied: Applied;
  #edits = 0;

  /** `applied` and `minute` as they are stored: what counts on has to stand on exactly that. */
  constructor(applied: Applied, minute: MinuteUse, options: ScoringOptions) {
    this.#options = options;
    this.#applied = applied;
    this.#cap = new MinuteCap(minute, options);
  }

  /** How far the room is counted once all batches are applied. */
  get applied(): Applied {
    return this.#applied;
  }

  /** Edits in batches that were not taken yet. */
  get edits(): number {
    return this.#edits;
  }

  /** `time`: when the log took the record. */
  receiveRecord(record: LogRecord, streamSeq: number, time: UnixMillis): Received {
    if (record.kind === "epoch" || headOf(record) <= this.#applied.seq) return { kind: "known" };
    const missing = Math.max(0, record.edits.firstSeq - this.#applied.seq - 1);
    const at = Math.max(time, this.#applied.time) as UnixMillis;
    for (const [index, edit] of record.edits.edits.entries()) {
      const seq = (record.edits.firstSeq + index) as Seq;
      if (seq > this.#applied.seq) this.#count(record, userOf(record, index), edit.payload.byteLength, seq, at, streamSeq);
    }
    return { kind: "counted", missing };
  }

  /** The next batch to apply, in order. */
  takeBatch(): Batch | undefined {
    const draft = this.#drafts.shift();
    if (draft === undefined) return undefined;
    this.#edits -= draft.edits;
    const awards = new Map([...draft.awards].map(([role, ofRole]) => [role, [...ofRole].map(([member, award]): Award => ({ member, ...award }))]));
    return { after: draft.after, applied: draft.applied, minute: { minute: draft.minute, hasBegun: draft.minuteHasBegun, points: draft.minutePoints }, windows: draft.windows, awards };
  }

  #count(record: EditsRecord, user: UserId, bytes: number, seq: Seq, time: UnixMillis, streamSeq: number): void {
    const draft = this.#draftFor(user, time);
    this.#edits += 1;
    draft.edits += 1;
    this.#applied = { epoch: epochOf(record), seq, streamSeq, time, missing: this.#applied.missing + (seq - this.#applied.seq - 1) };
    draft.applied = this.#applied;
    draft.users.add(user);
    if (this.#cap.advance(time)) {
      draft.minute = this.#cap.minute;
      draft.minuteHasBegun = true;
      draft.minutePoints = new Map();
    }
    const { granted, inMinute } = this.#cap.grant(user, worthOf({ kind: "edit", user, bytes }, this.#options));
    if (granted === 0) return; // The score stays what it was, and so does the moment it was reached.
    draft.minutePoints.set(user, inMinute);
    for (const role of BOARDS_OF.edit) this.#award(draft, role, user, granted, seq);
  }

  #award(draft: Draft, role: Role, user: UserId, points: number, reachedAt: number): void {
    let ofRole = draft.awards.get(role);
    if (ofRole === undefined) draft.awards.set(role, (ofRole = new Map()));
    const award = ofRole.get(user);
    if (award === undefined) ofRole.set(user, { points, reachedAt });
    else {
      award.points += points;
      award.reachedAt = reachedAt;
    }
  }

  #draftFor(user: UserId, time: UnixMillis): Draft {
    const last = this.#drafts.at(-1);
    const hour = last?.windows[0];
    if (last !== undefined && hour !== undefined && time < hour.end && (last.users.size < BATCH_USERS_MAX || last.users.has(user))) return last;
    const draft: Draft = {
      after: this.#applied.seq,
      windows: windowsAt(time),
      awards: new Map(),
      users: new Set(),
      applied: this.#applied,
      edits: 0,
      minute: this.#cap.minute,
      minuteHasBegun: false,
      minutePoints: new Map(),
    };
    this.#drafts.push(draft);
    return draft;
  }
}

function userOf(record: EditsRecord, index: number): UserId {
  const user = record.users.get(record.edits.edits[index]!.client);
  assert(user !== undefined, "a record that decodes has the user of each edit");
  return user;
}
