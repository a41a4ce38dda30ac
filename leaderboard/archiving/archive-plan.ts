/**
 * Archives the closed windows of a partition's rooms, each once. Redis removes them some time afterwards. Before an
 * archive is written, a sentinel proves that Redis lost nothing since the boards were read. Without this proof, a
 * window that Redis lost in part could become the archive.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { byRank, type CountedPosition, isAhead, NOTHING_APPLIED, type RankEntry } from "../boards/board.ts";
import type { MemberRole } from "../boards/keys.ts";
import { keptUntil } from "../boards/windows.ts";
import { WorkQueue } from "../counting/work-queue.ts";
import type { ArchivedBoard, CheckpointMark, ClosedTenant, Closing, ProgressReport, StoredBoards } from "../ports.ts";
import type { ArchiveWrite, ArchivingEffect, ArchivingInput, TenantWindow } from "./archiving-messages.ts";

export type ArchivingOptions = TenantArchivingOptions & {
  readonly boardCheckpointWritesMax: number;
};

const AT_A_TIME = 100;
/** The partition whose leaderboard archives the windows of tenants. */
const TENANTS_PARTITION = 0;

/** The current step of a closing. */
type Step =
  | { readonly kind: "checking" | "restoring" | "writing" }
  | { readonly kind: "reading"; readonly applied: CountedPosition }
  | { readonly kind: "confirming"; readonly applied: CountedPosition; readonly boards: readonly ArchivedBoard[] }
  | { readonly kind: "written" | "finishing"; readonly outcome: ArchiveWrite };

type State =
  | { readonly kind: "idle" | "finding" | "tenants" }
  | { readonly kind: "archiving"; readonly queue: WorkQueue<Closing>; readonly steps: Map<Closing, Step> };

export class ArchivePlan {
  readonly #partition: number;
  readonly #options: ArchivingOptions;
  readonly #isAside: (room: RoomKey) => boolean;
  readonly #tenants: TenantArchiving;
  #state: State = { kind: "idle" };
  #countMax = AT_A_TIME;
  #effects: ArchivingEffect[] = [];

  /** `isAside`: the room's checkpoint does not decode, so its windows are not archived. */
  constructor(partition: number, options: ArchivingOptions, isAside: (room: RoomKey) => boolean) {
    this.#partition = partition;
    this.#options = options;
    this.#isAside = isAside;
    this.#tenants = new TenantArchiving(options);
  }

  /** Whether the plan is ready for the next tick. */
  get isIdle(): boolean {
    return this.#state.kind === "idle";
  }

  receiveInput(input: ArchivingInput, wallNow: UnixMillis): ArchivingEffect[] {
    this.#take(input, wallNow);
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  #take(input: ArchivingInput, wallNow: UnixMillis): void {
    switch (input.kind) {
      case "look":
        return this.#look(input.through);
      case "closings-found":
        return this.#receiveClosings(input.closings);
      case "closing-checked":
        return this.#receiveChecked(input.closing, input.mark, input.stored, wallNow);
      case "closing-undecodable":
        this.#effects.push({ kind: "set-room-aside", room: input.closing.room, cause: input.cause });
        return this.#finish(input.closing);
      case "window-read":
        return this.#receiveBoards(input.closing, input.boards);
      case "confirmed":
        return "room" in input.subject ? this.#receiveConfirmed(input.subject, wallNow) : this.#advanceTenants(input, wallNow);
      case "archive-written":
        this.#steps.set(input.closing, { kind: "written", outcome: input.outcome });
        this.#effects.push({ kind: "check-deleted", closing: input.closing });
        return;
      case "deleted-checked":
        // The room was deleted in the meantime. Only this step removes the archive.
        if (input.isDeleted) this.#effects.push({ kind: "remove-archive", closing: input.closing });
        else this.#release(input.closing, this.#outcomeOf(input.closing), wallNow);
        return;
      case "archive-removed":
        return this.#release(input.closing, this.#outcomeOf(input.closing), wallNow);
      case "closing-finished":
        this.#effects.push({ kind: "archived", closing: input.closing, outcome: this.#outcomeOf(input.closing) });
        return this.#finish(input.closing);
      case "room-restored":
        return this.#receiveRestored(input.room);
      case "progress-read":
      case "closed-tenants-found":
      case "tenant-read":
      case "tenant-written":
      case "tenant-finished":
        return this.#advanceTenants(input, wallNow);
      default:
        return assertNever(input);
    }
  }

  get #steps(): Map<Closing, Step> {
    assert(this.#state.kind === "archiving", "a closing is archived while the plan archives");
    return this.#state.steps;
  }

  #look(through: UnixMillis | undefined): void {
    if (through === undefined || !this.isIdle) return;
    this.#state = { kind: "finding" };
    const endedBefore = (through - this.#options.boardArchiveGraceMs) as UnixMillis;
    this.#effects.push({ kind: "find-closings", endedBefore, countMax: this.#countMax });
  }

  #receiveClosings(closings: readonly Closing[]): void {
    const due = closings.filter(({ room }) => !this.#isAside(room));
    // Windows of rooms that are set aside stay at the head of the list, so the next tick reads more windows.
    this.#countMax = AT_A_TIME + 2 * (closings.length - due.length);
    this.#state = { kind: "archiving", queue: new WorkQueue(due, this.#options.boardCheckpointWritesMax), steps: new Map() };
    this.#advance();
  }

  #advance(): void {
    if (this.#state.kind !== "archiving") return;
    const { queue, steps } = this.#state;
    queue.advance((closing) => {
      if (this.#isAside(closing.room)) return false; // The room was set aside because of another of its windows.
      steps.set(closing, { kind: "checking" });
      this.#effects.push({ kind: "check-closing", closing });
      return true;
    });
    if (!queue.isOver) return;
    this.#state = { kind: "idle" };
    if (this.#partition !== TENANTS_PARTITION) return;
    this.#state = { kind: "tenants" };
    this.#effects.push(this.#tenants.begin());
  }

  #receiveChecked(closing: Closing, mark: CheckpointMark, stored: StoredBoards, wallNow: UnixMillis): void {
    if (stored !== "deleted" && isAhead(mark, stored?.applied ?? NOTHING_APPLIED)) {
      this.#steps.set(closing, { kind: "restoring" });
      this.#effects.push({ kind: "archived", closing: undefined, outcome: "behind" }, { kind: "restore-room", closing });
      return;
    }
    if (stored === "deleted" || stored === undefined) return this.#release(closing, "there", wallNow);
    this.#steps.set(closing, { kind: "reading", applied: stored.applied });
    const { boardRoles: roles, boardArchivedMax: countMax } = this.#options;
    this.#effects.push({ kind: "read-window", closing, roles, countMax });
  }

  #receiveBoards(closing: Closing, boards: readonly ArchivedBoard[]): void {
    const step = this.#steps.get(closing);
    assert(step?.kind === "reading", "a window that was read is being archived");
    this.#steps.set(closing, { kind: "confirming", applied: step.applied, boards: withMembers(boards) });
    this.#effects.push({ kind: "confirm", subject: closing });
  }

  #receiveConfirmed(closing: Closing, wallNow: UnixMillis): void {
    const step = this.#steps.get(closing);
    assert(step?.kind === "confirming", "a window that is confirmed was read");
    const { applied, boards } = step;
    if (boards.length === 0) return this.#release(closing, "there", wallNow);
    this.#steps.set(closing, { kind: "writing" });
    this.#effects.push({ kind: "write-archive", closing, archived: { applied, boards } });
  }

  #outcomeOf(closing: Closing): ArchiveWrite {
    const step = this.#steps.get(closing);
    assert(step?.kind === "written" || step?.kind === "finishing", "the archive of the window is written");
    return step.outcome;
  }

  #release(closing: Closing, outcome: ArchiveWrite, wallNow: UnixMillis): void {
    this.#steps.set(closing, { kind: "finishing", outcome });
    this.#effects.push({ kind: "finish-closing", closing, keepUntil: keptUntil(outcome, closing.window, wallNow) });
  }

  #receiveRestored(room: RoomKey): void {
    if (this.#state.kind !== "archiving") return;
    for (const [closing, { kind }] of this.#state.steps) if (kind === "restoring" && closing.room === room) this.#finish(closing);
  }

  #finish(closing: Closing): void {
    if (this.#state.kind !== "archiving") return;
    this.#state.steps.delete(closing);
    this.#state.queue.finish(closing);
    this.#advance();
  }

  #advanceTenants(input: Parameters<TenantArchiving["receiveInput"]>[0], wallNow: UnixMillis): void {
    const effects = this.#tenants.receiveInput(input, wallNow);
    this.#effects.push(...effects);
    if (this.#tenants.isOver) this.#state = { kind: "idle" };
  }
}

function withMembers(boards: readonly ArchivedBoard[]): ArchivedBoard[] {
  return boards.filter(({ members }) => members > 0);
}

/** The first members by rank. A scan may return a member twice. */
export function firstByRank(entries: readonly RankEntry[], countMax: number): RankEntry[] {
  const byMember = new Map(entries.map((entry) => [entry.member, entry]));
  return [...byMember.values()].sort(byRank).slice(0, countMax);
}

type TenantArchivingOptions = {
  readonly boardRoles: readonly MemberRole[];
  readonly logPartitions: number;
  readonly boardArchivedMax: number;
  readonly boardArchiveGraceMs: number;
};
type TenantArchivingInput = Extract<
  ArchivingInput,
  { kind: "progress-read" | "closed-tenants-found" | "tenant-read" | "tenant-written" | "tenant-finished" | "confirmed" }
>;

/**
 * Archives the closed windows of tenants, one at a time. A tenant's rooms are in all partitions. So a window is closed
 * only when each partition has counted past its end and has then sent the totals of its rooms.
 */
class TenantArchiving {
  readonly #options: TenantArchivingOptions;
  /** The first window is being archived. */
  #due: readonly ClosedTenant[] = [];
  #boards: TenantWindow | undefined;
  #outcome: ArchiveWrite = "there";
  #isOver = true;

  constructor(options: TenantArchivingOptions) {
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  begin(): ArchivingEffect {
    this.#isOver = false;
    return { kind: "read-progress", partitions: this.#options.logPartitions };
  }

  receiveInput(input: TenantArchivingInput, wallNow: UnixMillis): ArchivingEffect[] {
    switch (input.kind) {
      case "progress-read":
        return [{ kind: "find-closed-tenants", endedBefore: this.#endedBefore(input.reports), countMax: AT_A_TIME }];
      case "closed-tenants-found":
        this.#due = input.closed;
        return this.#readFirst();
      case "tenant-read":
        this.#boards = { people: withMembers(input.boards.people), rooms: withMembers(input.boards.rooms) };
        return [{ kind: "confirm", subject: this.#first }];
      case "confirmed":
        return this.#receiveConfirmed(wallNow);
      case "tenant-written":
        return [this.#finish(input.outcome, wallNow)];
      case "tenant-finished":
        this.#due = this.#due.slice(1);
        return [{ kind: "archived", closing: undefined, outcome: this.#outcome }, ...this.#readFirst()];
      default:
        return assertNever(input);
    }
  }

  get #first(): ClosedTenant {
    const first = this.#due[0];
    assert(first !== undefined, "a tenant's window is being archived");
    return first;
  }

  /** Every partition has counted all entries before this time, and has sent their totals. */
  #endedBefore(reports: readonly (ProgressReport | undefined)[]): UnixMillis {
    const sent = Math.min(...reports.map((report) => (report === undefined || report.isRebuilding ? 0 : report.totalsSent)));
    return (sent - this.#options.boardArchiveGraceMs) as UnixMillis;
  }

  #readFirst(): ArchivingEffect[] {
    const [closed] = this.#due;
    this.#isOver = closed === undefined;
    const { boardRoles: roles, boardArchivedMax: countMax } = this.#options;
    return closed === undefined ? [] : [{ kind: "read-tenant", closed, roles, countMax }];
  }

  #receiveConfirmed(wallNow: UnixMillis): ArchivingEffect[] {
    const boards = this.#boards;
    assert(boards !== undefined, "a tenant's window that is confirmed was read");
    if (boards.rooms.length === 0) return [this.#finish("there", wallNow)];
    return [{ kind: "write-tenant", closed: this.#first, boards }];
  }

  #finish(outcome: ArchiveWrite, wallNow: UnixMillis): ArchivingEffect {
    this.#outcome = outcome;
    return { kind: "finish-tenant", closed: this.#first, keepUntil: keptUntil(outcome, this.#first.window, wallNow) };
  }
}
