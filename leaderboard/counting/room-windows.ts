/**
 * The windows that a room has points in, and their totals in the tenant's board. A window is registered for archiving, and
 * its new users are added to the tenant's board, before a batch counts in it: a crash in between then forgets nothing.
 */

import type { UnixMillis, UserId } from "../../shared/ids.ts";
import type { ScoreBatch } from "../boards/board.ts";
import { type Window, windowsAt } from "../boards/windows.ts";
import type { BoardRoomRequest } from "./board-room-messages.ts";
import type { Source } from "./received.ts";

/**
 * Windows whose newest total the tenant's board may lack. One update is in progress at a time. A window is archived,
 * and a room removed from memory, only after the last update has ended.
 */
export class RoomTotals {
  readonly #unsent = new Map<string, Window>();
  #isSending = false;
  #isWanted = false;

  /** Whether the tenant's board holds every total. */
  get areSent(): boolean {
    return this.#unsent.size === 0 && !this.#isSending;
  }

  get isSending(): boolean {
    return this.#isSending;
  }

  /** The window's points rose, or rose in a leaderboard that may have stopped before it sent the total. */
  add(window: Window): void {
    this.#unsent.set(window.id, window);
  }

  /** Returns the windows to send now. During an update the next one waits for its end. */
  send(): readonly Window[] {
    this.#isWanted = true;
    return this.#isSending ? [] : this.#begin();
  }

  /** The update ended. Returns the windows to send next. */
  receiveSent(): readonly Window[] {
    this.#isSending = false;
    return this.#isWanted ? this.#begin() : [];
  }

  #begin(): readonly Window[] {
    const windows = [...this.#unsent.values()];
    this.#unsent.clear();
    this.#isWanted = false;
    this.#isSending = windows.length > 0;
    return windows;
  }
}

export class RoomWindows {
  readonly totals = new RoomTotals();
  /** Windows that may have points and are not archived, by id. */
  readonly #windows = new Map<string, Window>();
  /** For each stream, the end of the hour of its last entry: the windows of earlier entries are known. */
  readonly #hourEnds: Record<Source, number> = { edits: 0, activities: 0 };
  readonly #registered = new Set<string>();
  /** Users who were added to the tenant's board in this hour. */
  #added: { readonly hour: string; readonly users: Set<UserId> } = { hour: "", users: new Set() };

  get all(): readonly Window[] {
    return [...this.#windows.values()];
  }

  add(windows: readonly Window[]): void {
    for (const window of windows) {
      this.#windows.set(window.id, window);
      this.totals.add(window); // A leaderboard may have stopped before it sent the total.
    }
  }

  forget(id: string): void {
    this.#windows.delete(id);
  }

  /** An entry of that time arrived on the stream. */
  enter(source: Source, time: UnixMillis): void {
    if (time < this.#hourEnds[source]) return;
    const windows = windowsAt(time);
    this.#hourEnds[source] = windows[0]!.end;
    this.add(windows);
  }

  /** The next action for the batch: register its new windows, add its new users, or apply it. */
  nextRequest(batch: ScoreBatch): BoardRoomRequest {
    const windows = batch.windows.filter(({ id, kind }) => kind !== "all" && !this.#registered.has(id));
    if (windows.length > 0) return { kind: "open-windows", windows };
    const users = this.#newUsers(batch);
    return users.length > 0 ? { kind: "add-users", windows: batch.windows, users } : { kind: "apply-batch", batch };
  }

  receiveRegistered({ windows }: ScoreBatch): void {
    this.#registered.clear();
    for (const { id } of windows) this.#registered.add(id);
  }

  receiveAdded(batch: ScoreBatch): void {
    for (const user of this.#newUsers(batch)) this.#added.users.add(user);
  }

  /** A user who was added in an hour is in all windows of that hour. */
  #newUsers({ windows, awards }: ScoreBatch): readonly UserId[] {
    const [hour] = windows;
    if (hour !== undefined && this.#added.hour !== hour.id) this.#added = { hour: hour.id, users: new Set() };
    const users = new Set<UserId>();
    for (const ofRole of awards.values()) for (const { member } of ofRole) if (!this.#added.users.has(member)) users.add(member);
    return [...users];
  }
}
