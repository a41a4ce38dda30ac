/**
 * Merges the bytes of edits without integrating them. The document is the same as if Yjs applied the edits one after the
 * other. `Y.mergeUpdates` alone trusts its input. Of two structs at one place it may take the later one. An update with its
 * clients in another order than Yjs writes them can become one from which Yjs drops content of others. So each edit is
 * first written again as Yjs writes it, without the structs that are known already. Linear in the bytes. Rules YMG1 to
 * YMG4.
 */

import * as Y from "yjs";

import { type Struct, structsByClient } from "./checked-update.ts";
import { encodedStruct, type StructRun, writtenUpdate } from "./written-update.ts";

/** `base`: made by this function or by a document of Yjs. `edits`: of any writer, accepted by `checkUpdate`. */
export function mergedEdits(base: Uint8Array, edits: readonly Uint8Array[]): Uint8Array {
  if (edits.length === 0) return base;
  const known = Y.decodeStateVector(Y.encodeStateVectorFromUpdate(base));
  return Y.mergeUpdates([base, ...edits.map((edit) => withoutKnown(edit, known))]);
}

/** `known`: the exclusive end of each client's content. Receives what the edit adds. */
function withoutKnown(edit: Uint8Array, known: Map<number, number>): Uint8Array {
  const { structs, ds } = Y.decodeUpdate(edit);
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
