/**
 * The windows that a room has points in, and the scores that the tenant's boards may lack. A window is registered for
 * archiving before a batch counts in it: a crash in between then forgets nothing.
 */

import type { UnixMillis } from "../../shared/ids.ts";
import type { ScoreBatch } from "../boards/board.ts";
import { type Window, windowAt, type WindowKind, windowsAt } from "../boards/windows.ts";
import type { RoomChange } from "../ports.ts";
import type { BoardRoomRequest } from "./board-room-messages.ts";
import type { Source } from "./received.ts";

/** Maximum number of members of a window that are listed. Beyond it, all members are sent. */
const LISTED_MAX = 10_000;

/**
 * Windows and members whose newest scores the tenant's boards may lack. One update is in progress at a time. A window is
 * archived, and a room removed from memory, only after the last update has ended.
 */
export class RoomTotals {
  readonly #unsent = new Map<string, { readonly window: Window; members: Set<string> | "all" }>();
  #isSending = false;
  #isWanted = false;

  /** Whether the tenant's board holds every total. */
  get areSent(): boolean {
    return this.#unsent.size === 0 && !this.#isSending;
  }

  get isSending(): boolean {
    return this.#isSending;
  }

  /** These members' points rose. "all": the members are not known, because another leaderboard counted them. */
  add(window: Window, members: Iterable<string> | "all"): void {
    const known = this.#unsent.get(window.id) ?? { window, members: new Set<string>() };
    this.#unsent.set(window.id, known);
    if (members === "all") known.members = "all";
    if (members === "all" || known.members === "all") return;
    for (const member of members) known.members.add(member);
    if (known.members.size > LISTED_MAX) known.members = "all";
  }

  /** Returns the scores to send now. During an update the next one waits for its end. */
  send(): readonly RoomChange[] {
    this.#isWanted = true;
    return this.#isSending ? [] : this.#begin();
  }

  /** The update ended. Returns the scores to send next. */
  receiveSent(): readonly RoomChange[] {
    this.#isSending = false;
    return this.#isWanted ? this.#begin() : [];
  }

  #begin(): readonly RoomChange[] {
    const changes = [...this.#unsent.values()];
    this.#unsent.clear();
    this.#isWanted = false;
    this.#isSending = changes.length > 0;
    return changes;
  }
}

export class RoomWindows {
  readonly totals = new RoomTotals();
  /** Windows that may have points and are not archived, by id. */
  readonly #windows = new Map<string, Window>();
  /** For each stream, the end of the hour of its last entry: the windows of earlier entries are known. */
  readonly #hourEnds: Record<Source, number> = { edits: 0, activities: 0 };
  readonly #registered = new Set<string>();
  readonly #kinds: readonly WindowKind[];

  /** `kinds`: the windows that are counted. */
  constructor(kinds: readonly WindowKind[]) {
    this.#kinds = kinds;
  }

  /** `batch`: is being applied, so Redis may already have its points. */
  allWith(batch: ScoreBatch | undefined): readonly Window[] {
    const applying = (batch?.windows ?? []).map((window) => [window.id, window] as const);
    return [...new Map([...this.#windows, ...applying]).values()];
  }

  add(windows: readonly Window[], members: Iterable<string> | "all"): void {
    for (const window of windows) {
      this.#windows.set(window.id, window);
      this.totals.add(window, members);
    }
  }

  addBatch({ windows, awards }: ScoreBatch): void {
    const members = [...awards.values()].flatMap((ofRole) => ofRole.map(({ member }) => member));
    this.add(windows, members);
  }

  forget(id: string): void {
    this.#windows.delete(id);
  }

  /** An entry of that time was counted before this pass. */
  enterCounted(source: Source, time: UnixMillis): void {
    if (time < this.#hourEnds[source]) return;
    this.#hourEnds[source] = windowAt("hour", time).end;
    this.add(windowsAt(time, this.#kinds), "all");
  }

  /** The next action for the batch: register its new windows, or apply it. */
  nextRequest(batch: ScoreBatch): BoardRoomRequest {
    const windows = batch.windows.filter(({ id, kind }) => kind !== "all" && !this.#registered.has(id));
    return windows.length > 0 ? { kind: "open-windows", windows } : { kind: "apply-batch", batch };
  }

  receiveRegistered({ windows }: ScoreBatch): void {
    this.#registered.clear();
    for (const { id } of windows) this.#registered.add(id);
  }
}
