/**
 * What this gateway has of each thing that is limited, and what the others last said they have. Exact for what is
 * here; of elsewhere it knows what was true up to one report ago, and nothing of counts so small that nobody tells
 * them (below `toldShare` of the limit). So a limit may be passed, by what comes within one report and by at most
 * that share for each other gateway; and it heals by itself, for every report is whole and an old one lapses.
 */

import type { Count, CountKind, CountsReport } from "../../shared/bus/counts-report.ts";
import type { Millis } from "../../shared/ids.ts";

export type CountLimits = Readonly<Record<CountKind, number>>;

export type SharedCountsOptions = {
  readonly limits: CountLimits;
  /** A count is told to the others from this part of its limit on. */
  readonly toldShare: number;
  /** A report so old counts no more: whoever made it is gone. */
  readonly reportSilenceMsMax: number;
};

type Counts = Record<CountKind, Map<string, number>>;

export class SharedCounts {
  readonly #options: SharedCountsOptions;
  readonly #here = noCounts();
  /** The sum of all reports that hold. */
  readonly #elsewhere = noCounts();
  readonly #reports = new Map<string, { readonly at: Millis; readonly counts: readonly Count[] }>();
  /** Those large enough to be told. */
  readonly #told: Record<CountKind, Set<string>> = {
    "ip": new Set(),
    "tenant": new Set(),
    "tenant-rooms": new Set(),
    "room": new Set(),
    "tenant-edits": new Set(),
    "user-faults": new Set(),
    "address-faults": new Set(),
    "tenant-faults": new Set(),
    "full-room": new Set(),
  };

  constructor(options: SharedCountsOptions) {
    this.#options = options;
  }

  /** Others that were heard lately. */
  get sources(): number {
    return this.#reports.size;
  }

  here(kind: CountKind, key: string): number {
    return this.#here[kind].get(key) ?? 0;
  }

  elsewhere(kind: CountKind, key: string): number {
    return this.#elsewhere[kind].get(key) ?? 0;
  }

  /** Whether one more would be one too many. */
  isFull(kind: CountKind, key: string): boolean {
    return this.here(kind, key) + this.elsewhere(kind, key) >= this.#options.limits[kind];
  }

  /** Whether more is counted than the limit allows. */
  isOver(kind: CountKind, key: string): boolean {
    return this.here(kind, key) + this.elsewhere(kind, key) > this.#options.limits[kind];
  }

  /** How many more are counted than the limit allows. */
  over(kind: CountKind, key: string): number {
    return Math.max(0, this.here(kind, key) + this.elsewhere(kind, key) - this.#options.limits[kind]);
  }

  /** Whether one more would be one too many, were the limit by this part of it higher. */
  isFullWith(kind: CountKind, key: string, moreShare: number): boolean {
    const { limits } = this.#options;
    return this.here(kind, key) + this.elsewhere(kind, key) >= limits[kind] + Math.floor(limits[kind] * moreShare);
  }

  /** Whether it would be, were this gateway the only one. */
  isFullHere(kind: CountKind, key: string): boolean {
    return this.here(kind, key) >= this.#options.limits[kind];
  }

  /** `by` may be negative. */
  add(kind: CountKind, key: string, by: number): void {
    this.set(kind, key, this.here(kind, key) + by);
  }

  set(kind: CountKind, key: string, count: number): void {
    put(this.#here[kind], key, count);
    if (count > 0 && count >= this.#options.limits[kind] * this.#options.toldShare) this.#told[kind].add(key);
    else this.#told[kind].delete(key);
  }

  /** What the others are to know, those nearest to their limits first. */
  report(): Count[] {
    const counts = (Object.keys(this.#told) as CountKind[]).flatMap((kind) =>
      [...this.#told[kind]].map((key) => ({ kind, key, count: this.here(kind, key) })),
    );
    const { limits } = this.#options;
    return counts.sort((a, b) => b.count / limits[b.kind] - a.count / limits[a.kind]);
  }

  receiveReport({ source, counts }: CountsReport, now: Millis): void {
    this.#forget(source);
    this.#reports.set(source, { at: now, counts });
    for (const { kind, key, count } of counts) put(this.#elsewhere[kind], key, this.elsewhere(kind, key) + count);
  }

  /** Forgets whoever has not been heard. */
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
  };
}

function put(counts: Map<string, number>, key: string, count: number): void {
  if (count <= 0) counts.delete(key);
  else counts.set(key, count);
}
