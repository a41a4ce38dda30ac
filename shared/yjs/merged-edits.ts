/**
 * Merges the bytes of edits without integrating them. The document is the same as if Yjs applied the edits one after the
 * other. `Y.mergeUpdates` alone trusts its input. Of two structs at one place it may take the later one. An update with its
 * clients in another order than Yjs writes them can become one from which Yjs drops content of others. So each edit is
 * first written again as Yjs writes it, without the structs that are known already. Linear in the bytes.
 *
 * Yjs leaves out a struct whose place was taken while it waited for other content. Bytes do not show that, so such edits
 * are integrated. Rules YMG1 to YMG5.
 */

import * as Y from "yjs";

import { HOPS_MAX, withinBounds } from "./bounded-integration.ts";
import { type Struct, structsByClient } from "./checked-update.ts";
import { type ContentRun, isComplete, needsOf, runsOf } from "./update-needs.ts";
import { encodedStruct, type StructRun, writtenUpdate } from "./written-update.ts";

type Decoded = ReturnType<typeof Y.decodeUpdate>;

/** The document service has merged the edits one by one in limited time. */
const INTEGRATED_HOPS_MAX = 20 * HOPS_MAX;

/** `base`: made by this function or by a document of Yjs. `edits`: of any writer, accepted by `checkUpdate`. */
export function mergedEdits(base: Uint8Array, edits: readonly Uint8Array[]): Uint8Array {
  return mergeOf(base, edits).content;
}

/** `isContested`: an edit had to be integrated, which is not linear in the bytes. */
export function mergeOf(base: Uint8Array, edits: readonly Uint8Array[]): { readonly content: Uint8Array; readonly isContested: boolean } {
  if (edits.length === 0) return { content: base, isContested: false };
  const { added, isContested } = rewritten(base, edits);
  const integrated = isContested ? integratedEdits([base, ...edits]) : undefined;
  return { content: integrated ?? Y.mergeUpdates([base, ...added]), isContested };
}

/** Whether an edit has content at places where earlier content waits. Then the merge is not linear in the bytes. */
export function hasContested(base: Uint8Array, edits: readonly Uint8Array[]): boolean {
  return edits.length > 0 && rewritten(base, edits).isContested;
}

/** `added`: what each edit adds to the ones before it, as Yjs writes it. */
function rewritten(
  base: Uint8Array,
  edits: readonly Uint8Array[],
): { readonly added: readonly Uint8Array[]; readonly isContested: boolean } {
  const known = new Map<number, number>();
  const waiting = new WaitingContent();
  let isContested = false;
  const receive = (update: Decoded): void => {
    const runs = runsOf(update.structs);
    isContested ||= waiting.overlaps(runs);
    if (!isComplete(needsOf(update.structs, update.ds, runs), (client) => known.get(client) ?? 0)) waiting.add(runs);
  };
  const content = Y.decodeUpdate(base);
  receive(content);
  for (const [client, structs] of structsByClient(content.structs))
    if (structs[0]!.id.clock === 0) known.set(client, endBeforeGap(structs));
  const added = edits.map((edit) => {
    const update = Y.decodeUpdate(edit);
    receive(update);
    return withoutKnown(update, known);
  });
  return { added, isContested };
}

/** All parts in one document of Yjs, within limits on its work. Undefined: a limit was exceeded, or Yjs failed. */
export function integratedEdits(parts: readonly Uint8Array[]): Uint8Array | undefined {
  const doc = new Y.Doc();
  try {
    withinBounds(() => {
      for (const part of parts) Y.applyUpdate(doc, part);
    }, INTEGRATED_HOPS_MAX);
    return Y.encodeStateAsUpdate(doc);
  } catch {
    return undefined; // Yjs throws many kinds of errors.
  } finally {
    doc.destroy();
  }
}

/** The content of updates that needed content which came later, or never. One range for each client contains all of it. */
class WaitingContent {
  readonly #ranges = new Map<number, { start: number; end: number }>();

  add(runs: readonly ContentRun[]): void {
    for (const { client, start, end } of runs) {
      const range = this.#ranges.get(client);
      if (range === undefined) this.#ranges.set(client, { start, end });
      else [range.start, range.end] = [Math.min(range.start, start), Math.max(range.end, end)];
    }
  }

  overlaps(runs: readonly ContentRun[]): boolean {
    return runs.some(({ client, start, end }) => {
      const range = this.#ranges.get(client);
      return range !== undefined && start < range.end && end > range.start;
    });
  }
}

/** `known`: the exclusive end of each client's content. Receives what the edit adds. */
function withoutKnown({ structs, ds }: Decoded, known: Map<number, number>): Uint8Array {
  const runs: StructRun[] = [];
  for (const [client, all] of structsByClient(structs)) {
    const end = known.get(client) ?? 0;
    const first = all.findIndex((struct) => !(struct instanceof Y.Skip) && struct.id.clock + struct.length > end);
    if (first < 0) continue;
    const added = all.slice(first);
    const { clock } = added[0]!.id;
    const cut = Math.max(0, end - clock);
    runs.push({ client, clock: clock + cut, structs: added.map((struct, index) => encodedStruct(struct, index === 0 ? cut : 0)) });
    if (clock <= end) known.set(client, endBeforeGap(added));
  }
  return writtenUpdate(
    runs.sort((one, other) => other.client - one.client),
    ds.clients,
  );
}

function endBeforeGap(structs: readonly Struct[]): number {
  const gap = structs.find((struct) => struct instanceof Y.Skip);
  const last = structs.at(-1)!;
  return gap === undefined ? last.id.clock + last.length : gap.id.clock;
}
