/**
 * A histogram of latencies with buckets 1% wide from a microsecond up. Millions of samples cost little memory, and the
 * histograms of several workers and rounds add up exactly.
 */

const BUCKETS = 2_000;
/** Buckets per e-fold: 1% each. */
const RESOLUTION = 100;

export class Latencies {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;

  get total(): number {
    return this.#total;
  }

  record(ms: number): void {
    const bucket = Math.floor(Math.log(Math.max(1, ms * 1000)) * RESOLUTION);
    this.#counts[Math.min(bucket, BUCKETS - 1)]! += 1;
    this.#total += 1;
  }

  /** In milliseconds, rounded up to the bucket's upper edge. NaN without samples. */
  percentile(percent: number): number {
    if (this.#total === 0) return Number.NaN;
    const wanted = Math.ceil((this.#total * percent) / 100);
    let seen = 0;
    let bucket = 0;
    while (bucket < BUCKETS && seen + this.#counts[bucket]! < wanted) seen += this.#counts[bucket++]!;
    return Math.exp((bucket + 1) / RESOLUTION) / 1000;
  }

  add(others: Latencies): void {
    others.#counts.forEach((count, bucket) => (this.#counts[bucket]! += count));
    this.#total += others.#total;
  }

  /** Non-empty buckets as [bucket, count] pairs, for messages between processes. */
  toPairs(): LatencyPairs {
    return [...this.#counts.entries()].filter(([, count]) => count > 0);
  }

  static fromPairs(pairs: LatencyPairs): Latencies {
    const latencies = new Latencies();
    for (const [bucket, count] of pairs) {
      latencies.#counts[bucket] = count;
      latencies.#total += count;
    }
    return latencies;
  }
}

export type LatencyPairs = [bucket: number, count: number][];
