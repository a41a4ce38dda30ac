/**
 * One room's log and its stream of other activities turned into points. Takes each in its order, drops what is
 * counted already, and gathers the rest into batches, each within one hour, so that all of a batch lies in the same
 * windows. Neither how the streams fall into batches nor which is ahead of the other changes anything in the boards.
 */

import { assert } from "../../shared/assert.ts";
import type { Activity } from "../../shared/bus/activity.ts";
import { type EditsRecord, headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import type { Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Applied, Batch, Uses } from "../boards/board.ts";
import { type Caps, Draft } from "./draft.ts";
import { instantAfter, timeOf } from "./instants.ts";
import type { Cap, Role } from "../boards/keys.ts";
import { capOf, EDIT_ROLES, PRESENT_ROLES, type ScoringOptions, worthOfDeed, worthOfEdit } from "./scoring.ts";
import { type Window, windowsAt } from "../boards/windows.ts";

/** `missing`: edits before this record that the log has lost uncounted. */
export type Received = { readonly kind: "known" } | { readonly kind: "counted"; readonly missing: number };

/** One thing that a user did. */
type Done = { readonly user: UserId; readonly points: number; readonly roles: readonly Role[]; readonly cap: Cap };

export type ProjectionOptions = ScoringOptions & { readonly boardRoles: readonly Role[] };

export class RoomProjection {
  readonly #options: ProjectionOptions;
  readonly #caps: Caps;
  readonly #drafts: Draft[] = [];
  #applied: Applied;
  #entries = 0;
  /** Of the last entry: the calendar is asked once an hour. */
  #windows: readonly Window[] = [];

  /** `applied` and `uses` as they are stored: what counts on has to stand on exactly that. */
  constructor(applied: Applied, uses: Uses, options: ProjectionOptions) {
    this.#options = options;
    this.#applied = applied;
    this.#caps = {
      edits: capOf("edits", uses.edits, options),
      deeds: capOf("deeds", uses.deeds, options),
      present: capOf("present", uses.present, options),
    };
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
  receiveRecord(record: OwnersRecord, streamSeq: number, time: UnixMillis): Received {
    if (record.kind === "epoch" || headOf(record) <= this.#applied.seq) return { kind: "known" };
    const missing = Math.max(0, record.edits.firstSeq - this.#applied.seq - 1);
    const at = Math.max(time, this.#applied.time) as UnixMillis;
    const { edits, firstSeq } = record.edits;
    for (let index = Math.max(0, this.#applied.seq + 1 - firstSeq); index < edits.length; index++) {
      this.#countEdit(record, index, at, streamSeq);
    }
    return { kind: "counted", missing };
  }

  /** All of it or none: what was told at once goes into one batch. `time`: when the stream took it. */
  receiveActivity(activity: Activity, streamSeq: number, time: UnixMillis): Received {
    if (streamSeq <= this.#applied.activity) return { kind: "known" };
    const at = Math.max(time, timeOf(this.#applied.activityInstant)) as UnixMillis;
    const deeds = this.#deedsOf(activity);
    const draft = this.#draftFor(deeds.length, at);
    let instant = this.#applied.activityInstant;
    for (const deed of deeds) this.#award(draft, deed, (instant = instantAfter(instant, at, "activities")), at);
    this.#advance(draft, { ...this.#applied, activity: streamSeq, activityInstant: instant });
    return { kind: "counted", missing: 0 };
  }

  /** The next batch to apply, in order. */
  takeBatch(): Batch | undefined {
    const draft = this.#drafts.shift();
    this.#entries -= draft?.entries ?? 0;
    return draft?.batch();
  }

  #countEdit({ edits: { epoch, firstSeq, edits }, users }: EditsRecord, index: number, time: UnixMillis, streamSeq: number): void {
    const { client, payload } = edits[index]!;
    const user = users.get(client);
    assert(user !== undefined, "a record that decodes has the user of each edit");
    const { missing, seq: before, instant: last, activity, activityInstant } = this.#applied;
    const seq = (firstSeq + index) as Seq;
    const instant = instantAfter(last, time, "edits");
    const draft = this.#draftFor(1, time);
    this.#award(draft, { user, points: worthOfEdit(payload.byteLength, this.#options), roles: EDIT_ROLES, cap: "edits" }, instant, time);
    this.#advance(draft, { epoch, seq, streamSeq, time, missing: missing + (seq - before - 1), instant, activity, activityInstant });
  }

  #deedsOf(activity: Activity): Done[] {
    if (activity.kind === "present") {
      return activity.users.map((user) => ({ user, points: this.#options.boardSessionPoints, roles: PRESENT_ROLES, cap: "present" }));
    }
    return activity.deeds.map((deed) => ({ user: deed.user, ...worthOfDeed(deed, this.#options), cap: "deeds" }));
  }

  #advance(draft: Draft, applied: Applied): void {
    this.#entries += 1;
    this.#applied = applied;
    draft.advance(applied);
  }

  #award(draft: Draft, { user, points, roles, cap: name }: Done, instant: number, time: UnixMillis): void {
    const cap = this.#caps[name];
    if (cap.advance(time)) draft.beginPeriod(name, cap.period);
    const { granted, used } = cap.grant(user, points);
    if (granted === 0) return; // The score stays what it was, and so does the moment it was reached.
    draft.setUse(name, user, used);
    for (const role of roles) if (this.#options.boardRoles.includes(role)) draft.award(role, user, granted, instant);
  }

  /** The last one, unless it lies in another hour or so many users would be too many for it. */
  #draftFor(users: number, time: UnixMillis): Draft {
    const last = this.#drafts.at(-1);
    if (!isWithin(this.#windows, time)) this.#windows = windowsAt(time);
    if (last !== undefined && last.windows === this.#windows && last.hasPlaceFor(users)) return last;
    const draft = new Draft(this.#applied, this.#caps, this.#windows);
    this.#drafts.push(draft);
    return draft;
  }
}

function isWithin(windows: readonly Window[], time: UnixMillis): boolean {
  const hour = windows[0];
  return hour !== undefined && time >= hour.start && time < hour.end;
}
