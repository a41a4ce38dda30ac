/**
 * The facts that the bridge needs about a Yjs update, found without integrating it into a document: whether every
 * document of a room accepts it, and which content it builds on. Linear in the update. Rules YUF1 to YUF5.
 */

import * as Y from "yjs";

import { checkUpdate } from "../shared/yjs/checked-update.ts";
import { type ContentRun, needsOf, runsOf, type YClocks } from "../shared/yjs/update-needs.ts";

export type AcceptableUpdate = {
  readonly kind: "fit";
  /** The content that the update needs in addition to its own. */
  readonly needs: YClocks;
  /** The runs of content that the update has. */
  readonly runs: readonly ContentRun[];
  readonly deletes: Y.Snapshot["ds"];
};

export type UpdateFacts = AcceptableUpdate | { readonly kind: "unfit"; readonly why: string };

export function factsOf(update: Uint8Array): UpdateFacts {
  const check = checkUpdate(update);
  if (check.kind === "unfit") return { kind: "unfit", why: check.why };
  const { structs, ds } = Y.decodeUpdate(update);
  const runs = runsOf(structs);
  return { kind: "fit", needs: needsOf(structs, ds, runs), runs, deletes: ds };
}

/**
 * Maximum number of runs behind a hole of one Yjs client. A hostile writer can make 25,000 with an edit of 100 KB. Each
 * run is inserted in order, which took seconds beside 100,000 others.
 */
export const SPANS_MAX = 100;

type Span = { readonly start: number; readonly end: number };

/**
 * Content of a room, by Yjs client. After the runs 0–3 and 5–7 of a client its clock is 3, and 5–6 is contained. A run
 * above the limit counts as new, so that the bridge writes it again if a client sends it again.
 */
export class ContentRuns {
  readonly #clocks: Map<number, number>;
  /** Runs behind a hole, which wait for its content. In order, and none touches another. */
  readonly #behind = new Map<number, Span[]>();

  /** `clocks`: exclusive ends of content without a hole. */
  constructor(clocks: YClocks = new Map()) {
    this.#clocks = new Map(clocks);
  }

  /** Exclusive ends of the content before the first hole. */
  get clocks(): YClocks {
    return this.#clocks;
  }

  add({ client, start, end }: ContentRun): void {
    const clock = this.#clocks.get(client) ?? 0;
    if (end <= clock) return;
    const spans = this.#behind.get(client) ?? [];
    const first = firstFrom(spans, start);
    let last = first;
    while (last < spans.length && spans[last]!.start <= end) last += 1;
    const touched = spans.slice(first, last);
    if (touched.length === 0 && start > clock && spans.length >= SPANS_MAX) return;
    const joined = { start: Math.min(start, touched[0]?.start ?? start), end: Math.max(end, touched.at(-1)?.end ?? end) };
    if (start <= clock) this.#clocks.set(client, joined.end);
    spans.splice(first, last - first, ...(start <= clock ? [] : [joined]));
    if (spans.length > 0) this.#behind.set(client, spans);
    else this.#behind.delete(client);
  }

  has({ client, start, end }: ContentRun): boolean {
    if (end <= (this.#clocks.get(client) ?? 0)) return true;
    const spans = this.#behind.get(client) ?? [];
    const span = spans[firstFrom(spans, start)];
    return span !== undefined && span.start <= start && end <= span.end;
  }
}

/** Index of the first span that ends at `start` or later. */
function firstFrom(spans: readonly Span[], start: number): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle]!.end < start) low = middle + 1;
    else high = middle;
  }
  return low;
}
