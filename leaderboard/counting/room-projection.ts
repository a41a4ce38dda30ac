/**
 * Turns a room's log and its stream of other activities into points. Takes each stream in order, drops entries that are
 * already counted, and collects the rest into batches of one hour, so that all entries of a batch are in the same
 * windows. The resulting boards do not depend on the division into batches or on which stream is read first.
 */

import { assert } from "../../shared/assert.ts";
import type { Activity } from "../../shared/bus/activity.ts";
import { type EditsRecord, epochOf, headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import type { Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { type CountedPosition, countsEdit, type ScoreBatch, type Uses, type Award } from "../boards/board.ts";
import { instantAfter, timeOf } from "./received.ts";
import type { Cap, MemberRole } from "../boards/keys.ts";
import { capOf, EDIT_ROLES, PRESENT_ROLES, type ScoringOptions, pointsOfAction, pointsOfEdit, type PeriodCap } from "./scoring.ts";
import { type Window, windowAt, type WindowKind, windowsAt } from "../boards/windows.ts";

/** A batch is one script call, whose arguments are bounded. */
export const BATCH_USERS_MAX = 500;

type Caps = Readonly<Record<Cap, PeriodCap>>;

type Gain = { points: number; reachedAt: number };
type Use = { period: number; hasBegun: boolean; points: Map<UserId, number> | undefined };

const NO_POINTS: ReadonlyMap<UserId, number> = new Map();

/**
 * A batch that is being collected, within one hour. Every active room has one while it waits to be written, so a map is
 * created only when it has an entry.
 */
class Draft {
  readonly windows: readonly Window[];
  readonly #after: ScoreBatch["after"];
  readonly #gains = new Map<MemberRole, Map<UserId, Gain>>();
  readonly #uses: Readonly<Record<Cap, Use>>;
  /** An upper bound: a user with points under two caps, or in two cap periods, counts twice. */
  #users = 0;
  #applied: CountedPosition;
  #entries = 0;

  /** `applied`, and the current periods of `caps`: the state before the batch. */
  constructor(applied: CountedPosition, caps: Caps, windows: readonly Window[]) {
    this.windows = windows;
    this.#after = { seq: applied.seq, activity: applied.activity, time: applied.time };
    this.#applied = applied;
    this.#uses = { edits: unused(caps.edits), deeds: unused(caps.deeds), present: unused(caps.present) };
  }

  /** Number of edits, and of messages of activities. */
  get entries(): number {
    return this.#entries;
  }

  hasPlaceFor(users: number): boolean {
    return this.#users + users <= BATCH_USERS_MAX;
  }

  beginPeriod(cap: Cap, period: number): void {
    const use = this.#uses[cap];
    use.period = period;
    use.hasBegun = true;
    use.points = undefined;
  }

  /** `points`: all points that the user has under the cap in its period. */
  setUse(cap: Cap, user: UserId, points: number): void {
    const use = this.#uses[cap];
    use.points ??= new Map();
    if (!use.points.has(user)) this.#users += 1;
    use.points.set(user, points);
  }

  award(role: MemberRole, user: UserId, points: number, reachedAt: number): void {
    let gains = this.#gains.get(role);
    if (gains === undefined) this.#gains.set(role, (gains = new Map()));
    const gain = gains.get(user);
    if (gain === undefined) gains.set(user, { points, reachedAt });
    else {
      gain.points += points;
      gain.reachedAt = Math.max(gain.reachedAt, reachedAt);
    }
  }

  /** The batch has one more entry. After the batch the room is counted up to `applied`. */
  advance(applied: CountedPosition): void {
    this.#applied = applied;
    this.#entries += 1;
  }

  batch(): ScoreBatch {
    const awards = new Map<MemberRole, Award[]>();
    for (const [role, gains] of this.#gains) {
      awards.set(
        role,
        Array.from(gains, ([member, { points, reachedAt }]) => ({ member, points, reachedAt })),
      );
    }
    const { edits, deeds, present } = this.#uses;
    return {
      after: this.#after,
      applied: this.#applied,
      uses: { edits: used(edits), deeds: used(deeds), present: used(present) },
      windows: this.windows,
      awards,
    };
  }
}

function unused({ period }: PeriodCap): Use {
  return { period, hasBegun: false, points: undefined };
}

function used({ period, hasBegun, points }: Use): ScoreBatch["uses"][Cap] {
  return { period, hasBegun, points: points ?? NO_POINTS };
}

/**
 * `missing`: number of edits before this record that the log lost before they were counted. "gap": such a record is not
 * counted, because the projection refuses gaps.
 */
type ProjectionOutcome = { readonly kind: "known" | "gap" } | { readonly kind: "counted"; readonly missing: number };

/** One action of a user. */
type Done = { readonly user: UserId; readonly points: number; readonly roles: readonly MemberRole[]; readonly cap: Cap };

export type ProjectionOptions = ScoringOptions & {
  readonly boardRoles: readonly MemberRole[];
  readonly boardWindows: readonly WindowKind[];
  /** Edits that seem to be missing may be in the log below the pass's floor: a record after them is not counted. */
  readonly refusesGaps?: boolean;
};

export class RoomProjection {
  readonly #options: ProjectionOptions;
  readonly #caps: Caps;
  readonly #drafts: Draft[] = [];
  #applied: CountedPosition;
  #taken: CountedPosition;
  #entries = 0;
  /** The hour of the last entry, and its windows, so that the calendar is used only once an hour. */
  #hour: Window | undefined;
  #windows: readonly Window[] = [];

  /** `applied` and `uses`: exactly as they are stored. */
  constructor(applied: CountedPosition, uses: Uses, options: ProjectionOptions) {
    this.#options = options;
    this.#applied = this.#taken = applied;
    this.#caps = {
      edits: capOf("edits", uses.edits, options),
      deeds: capOf("deeds", uses.deeds, options),
      present: capOf("present", uses.present, options),
    };
  }

  /** The position of the room once all batches are applied. */
  get applied(): CountedPosition {
    return this.#applied;
  }

  /** The position of the room once the batches that were taken are applied. */
  get taken(): CountedPosition {
    return this.#taken;
  }

  /** Number of edits, and of messages of activities, in batches that are not applied yet. */
  get entries(): number {
    return this.#entries;
  }

  /** `time`: the time at which the log stored the record. */
  receiveRecord(record: OwnersRecord, streamSeq: number, time: UnixMillis): ProjectionOutcome {
    if (record.kind === "epoch") return { kind: "known" };
    const applied = this.#applied;
    if (countsEdit(applied, { epoch: epochOf(record), seq: headOf(record), time })) return { kind: "known" };
    // The log stored the record after all counted edits. So each of its edits is new, even if its seq was counted
    // before the log lost its end.
    const isLater = epochOf(record) > applied.epoch || time > applied.time;
    const counted = isLater ? Math.min(applied.seq, record.edits.firstSeq - 1) : applied.seq;
    const missing = Math.max(0, record.edits.firstSeq - counted - 1);
    if (missing > 0 && this.#options.refusesGaps === true) return { kind: "gap" };
    const at = Math.max(time, this.#applied.time) as UnixMillis;
    const { edits, firstSeq } = record.edits;
    for (let index = Math.max(0, counted + 1 - firstSeq); index < edits.length; index++) {
      this.#countEdit(record, index, at, streamSeq);
    }
    return { kind: "counted", missing };
  }

  /** Adds a complete activity to one batch. `time`: the time at which the stream stored it. */
  receiveActivity(activity: Activity, streamSeq: number, time: UnixMillis): ProjectionOutcome {
    if (streamSeq <= this.#applied.activity) return { kind: "known" };
    const at = Math.max(time, timeOf(this.#applied.activityInstant)) as UnixMillis;
    const actions = this.#actionsOf(activity);
    const draft = this.#draftFor(actions.length, at);
    let instant = this.#applied.activityInstant;
    for (const action of actions) this.#award(draft, action, (instant = instantAfter(instant, at, "activities")), at);
    this.#advance(draft, { ...this.#applied, activity: streamSeq, activityInstant: instant });
    return { kind: "counted", missing: 0 };
  }

  /** The next batch to apply, in order. */
  takeBatch(): ScoreBatch | undefined {
    const draft = this.#drafts.shift();
    if (draft === undefined) return undefined;
    const batch = draft.batch();
    this.#entries -= draft.entries;
    this.#taken = batch.applied;
    return batch;
  }

  #countEdit({ edits: { epoch, firstSeq, edits }, users }: EditsRecord, index: number, time: UnixMillis, streamSeq: number): void {
    const { client, payload } = edits[index]!;
    const user = users.get(client);
    assert(user !== undefined, "a record that decodes has the user of each edit");
    const { missing, seq: before, instant: last, activity, activityInstant } = this.#applied;
    const seq = (firstSeq + index) as Seq;
    const instant = instantAfter(last, time, "edits");
    const draft = this.#draftFor(1, time);
    this.#award(draft, { user, points: pointsOfEdit(payload, this.#options), roles: EDIT_ROLES, cap: "edits" }, instant, time);
    this.#advance(draft, {
      epoch,
      seq,
      streamSeq,
      time,
      missing: missing + Math.max(0, seq - before - 1),
      instant,
      activity,
      activityInstant,
    });
  }

  #actionsOf(activity: Activity): Done[] {
    if (activity.kind === "present") {
      return activity.users.map((user) => ({ user, points: this.#options.boardSessionPoints, roles: PRESENT_ROLES, cap: "present" }));
    }
    return activity.deeds.map((action) => ({ user: action.user, ...pointsOfAction(action, this.#options), cap: "deeds" }));
  }

  #advance(draft: Draft, applied: CountedPosition): void {
    this.#entries += 1;
    this.#applied = applied;
    draft.advance(applied);
  }

  #award(draft: Draft, { user, points, roles, cap: name }: Done, instant: number, time: UnixMillis): void {
    const cap = this.#caps[name];
    if (cap.advance(time)) draft.beginPeriod(name, cap.period);
    const { granted, used } = cap.grant(user, points);
    if (granted === 0) return; // Neither the score nor the instant at which it was reached changes.
    draft.setUse(name, user, used);
    for (const role of roles) if (this.#options.boardRoles.includes(role)) draft.award(role, user, granted, instant);
  }

  /** The last draft, unless it is in another hour or cannot take so many users. */
  #draftFor(users: number, time: UnixMillis): Draft {
    const last = this.#drafts.at(-1);
    if (this.#hour === undefined || time < this.#hour.start || time >= this.#hour.end) {
      this.#hour = windowAt("hour", time);
      this.#windows = windowsAt(time, this.#options.boardWindows);
    }
    if (last !== undefined && last.windows === this.#windows && last.hasPlaceFor(users)) return last;
    const draft = new Draft(this.#applied, this.#caps, this.#windows);
    this.#drafts.push(draft);
    return draft;
  }
}
