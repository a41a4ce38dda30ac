/**
 * This gateway's count of everything that is limited, and the last report of each other process. Local counts are
 * exact. Remote counts are as old as one report, and counts below `reportShare` of the limit are not reported. So a
 * limit may be exceeded by the changes within one report, and by that share for each other gateway. Errors do not last:
 * each report is complete, and an old report expires.
 */

import type { Count, CountKind, CountsReport } from "../../shared/bus/counts-report.ts";
import type { Millis } from "../../shared/ids.ts";

type CountLimits = Readonly<Record<CountKind, number>>;

export type SharedCountsOptions = {
  readonly limits: CountLimits;
  /** Share of its limit from which a count is reported. */
  readonly reportShare: number;
  /** Age at which a report expires, because its sender is gone. */
  readonly reportSilenceMsMax: number;
};

type Counts = Record<CountKind, Map<string, number>>;

export class SharedCounts {
  readonly #options: SharedCountsOptions;
  readonly #here = noCounts();
  /** The sum of all valid reports. */
  readonly #elsewhere = noCounts();
  readonly #reports = new Map<string, { readonly at: Millis; readonly counts: readonly Count[] }>();
  /** Counts that are large enough to report. */
  readonly #reported: Record<CountKind, Set<string>> = {
    "ip": new Set(),
    "tenant": new Set(),
    "tenant-rooms": new Set(),
    "room": new Set(),
    "tenant-edits": new Set(),
    "user-faults": new Set(),
    "address-faults": new Set(),
    "tenant-faults": new Set(),
    "full-room": new Set(),
    "user": new Set(),
    "user-edits": new Set(),
  };

  constructor(options: SharedCountsOptions) {
    this.#options = options;
  }

  /** Processes with a recent report. */
  get sources(): number {
    return this.#reports.size;
  }

  here(kind: CountKind, key: string): number {
    return this.#here[kind].get(key) ?? 0;
  }

  elsewhere(kind: CountKind, key: string): number {
    return this.#elsewhere[kind].get(key) ?? 0;
  }

  /** Whether one more would exceed the limit. */
  isFull(kind: CountKind, key: string): boolean {
    return this.here(kind, key) + this.elsewhere(kind, key) >= this.#options.limits[kind];
  }

  /** Whether the count is above the limit. */
  isOver(kind: CountKind, key: string): boolean {
    return this.here(kind, key) + this.elsewhere(kind, key) > this.#options.limits[kind];
  }

  /** How far the count is above the limit. */
  over(kind: CountKind, key: string): number {
    return Math.max(0, this.here(kind, key) + this.elsewhere(kind, key) - this.#options.limits[kind]);
  }

  /** Whether one more would exceed the limit raised by this share. */
  isFullWith(kind: CountKind, key: string, moreShare: number): boolean {
    const { limits } = this.#options;
    return this.here(kind, key) + this.elsewhere(kind, key) >= limits[kind] + Math.floor(limits[kind] * moreShare);
  }

  /** Whether one more would exceed the limit, counting this gateway only. */
  isFullHere(kind: CountKind, key: string): boolean {
    return this.here(kind, key) >= this.#options.limits[kind];
  }

  /** `by` may be negative. */
  add(kind: CountKind, key: string, by: number): void {
    this.set(kind, key, this.here(kind, key) + by);
  }

  set(kind: CountKind, key: string, count: number): void {
    put(this.#here[kind], key, count);
    if (count > 0 && count >= this.#options.limits[kind] * this.#options.reportShare) this.#reported[kind].add(key);
    else this.#reported[kind].delete(key);
  }

  /** The counts for the other processes, those nearest to their limits first. */
  report(): Count[] {
    const counts = (Object.keys(this.#reported) as CountKind[]).flatMap((kind) =>
      [...this.#reported[kind]].map((key) => ({ kind, key, count: this.here(kind, key) })),
    );
    const { limits } = this.#options;
    return counts.sort((a, b) => b.count / limits[b.kind] - a.count / limits[a.kind]);
  }

  receiveReport({ source, counts }: CountsReport, now: Millis): void {
    this.#forget(source);
    this.#reports.set(source, { at: now, counts });
    for (const { kind, key, count } of counts) put(this.#elsewhere[kind], key, this.elsewhere(kind, key) + count);
  }

  /** Forgets processes without a recent report. */
  receiveTick(now: Millis): void {
    for (const [source, { at }] of this.#reports) if (now - at > this.#options.reportSilenceMsMax) this.#forget(source);
  }

  #forget(source: string): void {
    for (const { kind, key, count } of this.#reports.get(source)?.counts ?? [])
      put(this.#elsewhere[kind], key, this.elsewhere(kind, key) - count);
    this.#reports.delete(source);
  }
}

function noCounts(): Counts {
  return {
    "ip": new Map(),
    "tenant": new Map(),
    "tenant-rooms": new Map(),
    "room": new Map(),
    "tenant-edits": new Map(),
    "user-faults": new Map(),
    "address-faults": new Map(),
    "tenant-faults": new Map(),
    "full-room": new Map(),
    "user": new Map(),
    "user-edits": new Map(),
  };
}

function put(counts: Map<string, number>, key: string, count: number): void {
  if (count <= 0) counts.delete(key);
  else counts.set(key, count);
}
