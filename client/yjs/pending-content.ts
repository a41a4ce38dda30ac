/**
 * Finds content that the room lacks although an edit of the room brought it into the document. This happens when
 * another provider gave the document an update that stayed pending until that edit arrived. Yjs integrates both in one
 * transaction, whose origin is the room. The invariant: content that the room itself sent is never sent again, because
 * every client would repeat it.
 */

import * as Y from "yjs";

/** Clocks of one Yjs client in an update of the room. */
type ClockRange = { readonly client: number; readonly from: number; readonly to: number };

export class PendingContent {
  readonly #doc: Y.Doc;
  /** Content that the room sent and the document cannot integrate yet. */
  #pendingOfRoom: ClockRange[] = [];
  #areDeletionsOfRoom = false;

  constructor(doc: Y.Doc) {
    this.#doc = doc;
  }

  /** Runs `apply`, which applies updates of the room and returns them. Returns the content that the room lacks; undefined: nothing. */
  lackingAfter(apply: () => readonly Uint8Array[]): Uint8Array | undefined {
    const { store } = this.#doc;
    const [hadStructs, hadDeletions] = [store.pendingStructs !== null, store.pendingDs !== null];
    if (!hadStructs && !hadDeletions) {
      this.#pendingOfRoom = [];
      this.#areDeletionsOfRoom = false;
      this.#notePending(apply(), hadDeletions);
      return undefined;
    }
    const known = Y.decodeStateVector(Y.encodeStateVector(this.#doc));
    let integrated: Uint8Array | undefined;
    const keepUpdate = (update: Uint8Array): void => void (integrated ??= update);
    this.#doc.on("update", keepUpdate);
    const applied = apply();
    this.#doc.off("update", keepUpdate);

    extend(known, [...this.#pendingOfRoom, ...applied.flatMap(rangesOf)]);
    const areDeletionsForeign = hadDeletions && !this.#areDeletionsOfRoom;
    this.#notePending(applied, hadDeletions);
    if (integrated === undefined) return undefined;
    const lacking = Y.diffUpdate(integrated, Y.encodeStateVector(known));
    const { structs, ds } = Y.decodeUpdate(lacking);
    const hasContent = structs.some((struct) => !(struct instanceof Y.Skip));
    return hasContent || (areDeletionsForeign && ds.clients.size > 0) ? lacking : undefined;
  }

  #notePending(applied: readonly Uint8Array[], hadDeletions: boolean): void {
    const { store } = this.#doc;
    if (store.pendingDs === null) this.#areDeletionsOfRoom = false;
    else if (!hadDeletions) this.#areDeletionsOfRoom = true;

    if (store.pendingStructs === null) this.#pendingOfRoom = [];
    else
      this.#pendingOfRoom = [...this.#pendingOfRoom, ...applied.flatMap(rangesOf)].filter(
        ({ client, to }) => to > Y.getState(store, client),
      );
  }
}

function rangesOf(update: Uint8Array): ClockRange[] {
  const { from, to } = Y.parseUpdateMeta(update);
  return [...from].map(([client, clock]) => ({ client, from: clock, to: to.get(client) ?? clock }));
}

/** Adds ranges that connect to the known content. After a gap, the document may have other content that the room lacks. */
function extend(known: Map<number, number>, ranges: readonly ClockRange[]): void {
  for (const { client, from, to } of [...ranges].sort((a, b) => a.from - b.from)) {
    const end = known.get(client) ?? 0;
    if (from <= end) known.set(client, Math.max(end, to));
  }
}
