/**
 * Archives the closed windows of tenants, one after the other. A tenant's rooms lie in all partitions: a window is closed
 * once each partition has counted past its end and has sent its rooms' totals since.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { ClosedTenant, TenantPage, ProgressReport } from "../ports.ts";
import type { ArchiveWrite, ArchivingEffect, ArchivingInput } from "./archiving-messages.ts";
import { keptUntil } from "../boards/windows.ts";

export type TenantArchivingOptions = {
  readonly logPartitions: number;
  readonly boardArchivedMax: number;
  readonly boardArchiveGraceMs: number;
};
export type TenantArchivingInput = Extract<
  ArchivingInput,
  { kind: "progress-read" | "closed-tenants-found" | "tenant-read" | "tenant-written" | "tenant-finished" | "confirmed" }
>;

const AT_A_TIME = 100;

export class TenantArchiving {
  readonly #options: TenantArchivingOptions;
  /** The first is being archived. */
  #due: readonly ClosedTenant[] = [];
  #page: TenantPage | undefined;
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

  receive(input: TenantArchivingInput, wallNow: UnixMillis): ArchivingEffect[] {
    switch (input.kind) {
      case "progress-read":
        return [{ kind: "find-closed-tenants", endedBefore: this.#endedBefore(input.words), countMax: AT_A_TIME }];
      case "closed-tenants-found":
        this.#due = input.closed;
        return this.#readFirst();
      case "tenant-read":
        this.#page = input.page;
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

  /** Every partition has counted, and sent, everything that its streams took before. */
  #endedBefore(words: readonly (ProgressReport | undefined)[]): UnixMillis {
    const sent = Math.min(...words.map((word) => (word === undefined || word.isRebuilding ? 0 : word.told)));
    return (sent - this.#options.boardArchiveGraceMs) as UnixMillis;
  }

  #readFirst(): ArchivingEffect[] {
    const [closed] = this.#due;
    this.#isOver = closed === undefined;
    return closed === undefined ? [] : [{ kind: "read-tenant", closed, countMax: this.#options.boardArchivedMax }];
  }

  #receiveConfirmed(wallNow: UnixMillis): ArchivingEffect[] {
    const page = this.#page;
    assert(page !== undefined, "a tenant's window that is confirmed was read");
    if (page.rooms === 0) return [this.#finish("there", wallNow)];
    return [{ kind: "write-tenant", closed: this.#first, page: { rooms: page.rooms, people: page.people, ranking: page.ranking } }];
  }

  #finish(outcome: ArchiveWrite, wallNow: UnixMillis): ArchivingEffect {
    this.#outcome = outcome;
    return { kind: "finish-tenant", closed: this.#first, keepUntil: keptUntil(outcome, this.#first.window, wallNow) };
  }
}
