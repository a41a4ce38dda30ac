/**
 * Merges the bytes of edits without integrating them, with the result of integrating one after the other. `Y.mergeUpdates`
 * alone trusts its input in two ways. Of two structs at one place it may take the later one. And it requires that an update
 * has its clients in descending order, as Yjs writes them: from another order it makes an update that names a client twice,
 * and Yjs then drops the earlier part. So a hostile edit could remove what others wrote. Rules YMG1 to YMG3.
 */

import * as Y from "yjs";

/** `base`: what this function or a document of Yjs made. `edits`: of any writer, accepted by `checkUpdate`. */
export function mergedEdits(base: Uint8Array, edits: readonly Uint8Array[]): Uint8Array {
  if (edits.length === 0) return base;
  const known = Y.decodeStateVector(Y.encodeStateVectorFromUpdate(base));
  const added = edits.map((edit) => {
    const unknown = inOrder(Y.diffUpdate(edit, Y.encodeStateVector(known))); // In this order: a document marks what is missing as deleted.
    for (const struct of Y.decodeUpdate(unknown).structs) {
      const { client, clock } = struct.id;
      if (!(struct instanceof Y.Skip) && clock <= (known.get(client) ?? 0)) known.set(client, clock + struct.length);
    }
    return unknown;
  });
  return Y.mergeUpdates([base, ...added]);
}

function inOrder(edit: Uint8Array): Uint8Array {
  const { structs } = Y.decodeUpdate(edit);
  const isOrdered = structs.every(({ id }, index) => {
    const before = structs[index - 1];
    return before === undefined || id.client < before.id.client || (id.client === before.id.client && id.clock >= before.id.clock);
  });
  if (isOrdered) return edit;
  const doc = new Y.Doc();
  try {
    Y.applyUpdate(doc, edit);
    return Y.encodeStateAsUpdate(doc); // With the structs that wait for others.
  } finally {
    doc.destroy();
  }
}
