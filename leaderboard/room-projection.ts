/**
 * One room's log and its stream of other activities turned into points. Takes each in its order, drops what is
 * counted already, and gathers the rest into batches, each within one hour, so that all of a batch lies in the same
 * windows. Neither how the streams fall into batches nor which is ahead of the other changes anything in the boards.
 */

import { assert } from "../shared/assert.ts";
import type { Activity } from "../shared/bus/activity.ts";
import { epochOf, type EditsRecord, headOf, type LogRecord } from "../shared/bus/record.ts";
import type { Seq, UnixMillis, UserId } from "../shared/ids.ts";
import type { Applied, Award, Batch, Mark, Uses } from "./board.ts";
import { instantAfter, timeOf } from "./instants.ts";
import type { Role } from "./keys.ts";
import { type Cap, capOf, EDIT_ROLES, type PeriodCap, PRESENT_ROLES, type ScoringOptions, worthOfDeed, worthOfEdit } from "./scoring.ts";
import { type Window, windowsAt } from "./windows.ts";

/** A batch is one call of a script, whose arguments are bounded. */
export const BATCH_USERS_MAX = 500;

/** `missing`: edits before this record that the log has lost uncounted. */
export type Received = { readonly kind: "known" } | { readonly kind: "counted"; readonly missing: number };

/** One thing a user did. */
type Deed = { readonly user: UserId; readonly points: number; readonly roles: readonly Role[]; readonly cap: Cap; readonly at: number };

type Draft = {
  readonly after: Mark;
  readonly windows: readonly Window[];
  readonly awards: Map<Role, Map<UserId, { points: number; reachedAt: number }>>;
  readonly users: Set<UserId>;
  readonly uses: Record<Cap, { period: number; hasBegun: boolean; points: Map<UserId, number> }>;
  applied: Applied;
  /** Edits, and messages of activities. */
  entries: number;
};

export class RoomProjection {
  readonly #options: ScoringOptions;
  readonly #caps: Readonly<Record<Cap, PeriodCap>>;
  readonly #drafts: Draft[] = [];
  #applied: Applied;
  #entries = 0;
  /** Of the last entry: the calendar is asked once an hour. */
  #windows: readonly Window[] = [];

  /** `applied` and `uses` as they are stored: what counts on has to stand on exactly that. */
  constructor(applied: Applied, uses: Uses, options: ScoringOptions) {
    this.#options = options;
    this.#applied = applied;
    this.#caps = { edits: capOf("edits", uses.edits, options), deeds: capOf("deeds", uses.deeds, options), present: capOf("present", uses.present, options) };
  }

  /** How far the room is counted once all batches are applied. */
  get applied(): Applied {
    return this.#applied;
  }

  /** Edits, and messages of activities, in batches that were not taken yet. */
  get entries(): number {
    return this.#entries;
  }

  /** `time`: when the log took the record. */
  receiveRecord(record: LogRecord, streamSeq: number, time: UnixMillis): Received {
    if (record.kind === "epoch" || headOf(record) <= this.#applied.seq) return { kind: "known" };
    const missing = Math.max(0, record.edits.firstSeq - this.#applied.seq - 1);
    const at = Math.max(time, this.#applied.time) as UnixMillis;
    for (const [index, edit] of record.edits.edits.entries()) {
      const seq = (record.edits.firstSeq + index) as Seq;
      if (seq > this.#applied.seq) this.#countEdit(record, userOf(record, index), edit.payload.byteLength, seq, at, streamSeq);
    }
    return { kind: "counted", missing };
  }

  /** All of it or none: what was told at once goes into one batch. `time`: when the stream took it. */
  receiveActivity(activity: Activity, streamSeq: number, time: UnixMillis): Received {
    if (streamSeq <= this.#applied.activity) return { kind: "known" };
    const at = Math.max(time, timeOf(this.#applied.activityInstant)) as UnixMillis;
    const users = activity.kind === "present" ? activity.users : activity.deeds.map(({ user }) => user);
    const draft = this.#draftFor(users, at);
    let instant = this.#applied.activityInstant;
    const award = (user: UserId, cap: Cap, points: number, roles: readonly Role[]): void => {
      instant = instantAfter(instant, at, "activities");
      this.#award(draft, { user, points, roles, cap, at: instant }, at);
    };
    if (activity.kind === "present") for (const user of activity.users) award(user, "present", this.#options.boardSessionPoints, PRESENT_ROLES);
    else {
      for (const deed of activity.deeds) {
        const { points, roles } = worthOfDeed(deed, this.#options);
        award(deed.user, "deeds", points, roles);
      }
    }
    this.#advance(draft, { ...this.#applied, activity: streamSeq, activityInstant: instant });
    return { kind: "counted", missing: 0 };
  }

  /** The next batch to apply, in order. */
  takeBatch(): Batch | undefined {
    const draft = this.#drafts.shift();
    if (draft === undefined) return undefined;
    this.#entries -= draft.entries;
    const { after, applied, uses, windows } = draft;
    const awards = new Map([...draft.awards].map(([role, ofRole]) => [role, [...ofRole].map(([member, award]): Award => ({ member, ...award }))]));
    return { after, applied, uses, windows, awards };
  }

  #countEdit(record: EditsRecord, user: UserId, bytes: number, seq: Seq, time: UnixMillis, streamSeq: number): void {
    const draft = this.#draftFor([user], time);
    const instant = instantAfter(this.#applied.instant, time, "edits");
    this.#award(draft, { user, points: worthOfEdit(bytes, this.#options), roles: EDIT_ROLES, cap: "edits", at: instant }, time);
    this.#advance(draft, { ...this.#applied, epoch: epochOf(record), seq, streamSeq, time, instant, missing: this.#applied.missing + (seq - this.#applied.seq - 1) });
  }

  #advance(draft: Draft, applied: Applied): void {
    this.#entries += 1;
    draft.entries += 1;
    this.#applied = applied;
    draft.applied = applied;
  }

  #award(draft: Draft, { user, points, roles, cap: name, at }: Deed, time: UnixMillis): void {
    draft.users.add(user);
    const cap = this.#caps[name];
    if (cap.advance(time)) draft.uses[name] = { period: cap.period, hasBegun: true, points: new Map() };
    const { granted, used } = cap.grant(user, points);
    if (granted === 0) return; // The score stays what it was, and so does the moment it was reached.
    draft.uses[name].points.set(user, used);
    for (const role of roles) {
      let ofRole = draft.awards.get(role);
      if (ofRole === undefined) draft.awards.set(role, (ofRole = new Map()));
      const award = ofRole.get(user);
      if (award === undefined) ofRole.set(user, { points: granted, reachedAt: at });
      else {
        award.points += granted;
        award.reachedAt = Math.max(award.reachedAt, at);
      }
    }
  }

  /** The last one, unless it lies in another hour or these users would be too many for it. */
  #draftFor(users: readonly UserId[], time: UnixMillis): Draft {
    const last = this.#drafts.at(-1);
    if (!isWithin(this.#windows, time)) this.#windows = windowsAt(time);
    if (last !== undefined && last.windows === this.#windows && hasPlaceFor(last, users)) return last;
    const draft: Draft = {
      after: { seq: this.#applied.seq, activity: this.#applied.activity },
      windows: this.#windows,
      awards: new Map(),
      users: new Set(),
      uses: usesOf(this.#caps),
      applied: this.#applied,
      entries: 0,
    };
    this.#drafts.push(draft);
    return draft;
  }
}

function isWithin([hour]: readonly Window[], time: UnixMillis): boolean {
  return hour !== undefined && time >= hour.start && time < hour.end;
}

function hasPlaceFor({ users: known }: Draft, users: readonly UserId[]): boolean {
  return known.size + users.length <= BATCH_USERS_MAX || users.every((user) => known.has(user));
}

function usesOf(caps: Readonly<Record<Cap, PeriodCap>>): Draft["uses"] {
  const unchanged = (cap: Cap) => ({ period: caps[cap].period, hasBegun: false, points: new Map<UserId, number>() });
  return { edits: unchanged("edits"), deeds: unchanged("deeds"), present: unchanged("present") };
}

function userOf(record: EditsRecord, index: number): UserId {
  const user = record.users.get(record.edits.edits[index]!.client);
  assert(user !== undefined, "a record that decodes has the user of each edit");
  return user;
}
