/**
 * Checks a Yjs update before it is applied. Every limit depends only on the update, and the nesting also on the document
 * below it, so all clients and the document service refuse the same edits. The invariant: Yjs applies an update that passes
 * without an error, without overflowing the stack, and in one or two seconds at most. Rules YCK1 to YCK8.
 */

import * as decoding from "lib0/decoding";
import * as Y from "yjs";

import { HOPS_MAX, NESTING_MAX, nestingOf, UpdateRefused, withinBounds } from "./bounded-integration.ts";

/**
 * An edit of 512 KB has about 60,000 structs at most. Measured: 50,000 inserts that split one text from its end take Yjs
 * 2 s.
 */
export const STRUCTS_MAX = 50_000;
/** Maximum number of deletions out of order. Measured: 10,000 that split one text from its end take Yjs 0.2 s, and 100,000 take 29 s. */
const DELETIONS_MAX = 10_000;
/** The conflicts of so few structs cannot exceed `HOPS_MAX`, so they are not measured. */
const STRUCTS_UNMEASURED = Math.floor(Math.sqrt(HOPS_MAX));

/** Exclusive end of the clocks that the update has of each Yjs client. */
type UpdateEnds = ReadonlyMap<number, number>;
type UpdateCheck =
  { readonly kind: "fit"; readonly ends: UpdateEnds } | { readonly kind: "unfit"; readonly why: string; readonly cause?: unknown };

export type Struct = ReturnType<typeof Y.decodeUpdate>["structs"][number];
type DeleteSet = ReturnType<typeof Y.decodeUpdate>["ds"];

/** `doc`: the document that the update will be applied to. Without it, only the nesting within the update counts. */
export function checkUpdate(update: Uint8Array, doc?: Y.Doc): UpdateCheck {
  try {
    const { structs, ds } = Y.decodeUpdate(update);
    if (structs.length > STRUCTS_MAX) return unfit(`it has ${structs.length} structs, more than ${STRUCTS_MAX}`);
    const deletions = unsortedDeletions(ds);
    if (deletions > DELETIONS_MAX) return unfit(`it has ${deletions} deletions out of order, more than ${DELETIONS_MAX}`);
    if (structs.some(isBroken) || hasInvalidDeletion(ds)) return unfit("Yjs never writes such an update, and stops half-way through it");
    const byClient = structsByClient(structs);
    if (!hasEachClientOnce(update, byClient)) return unfit("it names a client twice or without structs, as Yjs never does");
    if (structs.some((struct) => struct instanceof Y.Item && isValueTooDeep(struct.content))) return unfit(TOO_DEEP);
    if (isTooDeep(structs, byClient, doc)) return unfit(TOO_DEEP);
    if (structs.length > STRUCTS_UNMEASURED) measureConflicts(update);
    return { kind: "fit", ends: endsOf(byClient) };
  } catch (cause) {
    if (cause instanceof UpdateRefused) return unfit(cause.message);
    return { kind: "unfit", why: "it is no Yjs update (version 1)", cause }; // Yjs throws errors of any kind on other bytes.
  }
}

const TOO_DEEP = `its types or values lie in each other more than ${NESTING_MAX} deep`;

function unfit(why: string): UpdateCheck {
  return { kind: "unfit", why };
}

/**
 * Yjs searches for the predecessor of an item among the items before it, and throws if an item names a later one of its
 * own client. The document then contains a part of the update.
 */
function isBroken(struct: Struct): boolean {
  if (struct.length === 0 || !Number.isSafeInteger(struct.id.clock + struct.length)) return true;
  const isBehind = (id: Y.ID | null): boolean => id !== null && id.client === struct.id.client && id.clock >= struct.id.clock;
  return (
    struct instanceof Y.Item && [struct.origin, struct.rightOrigin, struct.parent instanceof Y.ID ? struct.parent : null].some(isBehind)
  );
}

/**
 * Yjs throws if the document lacks the place of a deletion of nothing. At 2 ** 53 a clock plus one is the same number, so a
 * deletion there becomes one of nothing.
 */
function hasInvalidDeletion({ clients }: DeleteSet): boolean {
  return [...clients.values()].some((ranges) => ranges.some(({ clock, len }) => len === 0 || !Number.isSafeInteger(clock + len)));
}

/**
 * Yjs writes the deletions of a client in order, and applies them in time linear to their number. Each deletion out of
 * order may move all structs.
 */
function unsortedDeletions(ds: DeleteSet): number {
  let unsorted = 0;
  for (const ranges of ds.clients.values()) {
    const isSorted = ranges.every(({ clock }, index) => index === 0 || clock >= ranges[index - 1]!.clock);
    if (!isSorted) unsorted += ranges.length;
  }
  return unsorted;
}

/** Structs of each client, in the order of their clocks: `checkUpdate` accepts each client once. */
export function structsByClient(structs: readonly Struct[]): ReadonlyMap<number, Struct[]> {
  const byClient = new Map<number, Struct[]>();
  for (const struct of structs) {
    const known = byClient.get(struct.id.client);
    if (known === undefined) byClient.set(struct.id.client, [struct]);
    else known.push(struct);
  }
  return byClient;
}

/**
 * Yjs keeps only the last structs of a client that occurs twice, and other readers keep all. The number of structs may be a
 * number of so many bytes that it becomes NaN: readers of the check skip these structs, and a document throws.
 */
function hasEachClientOnce(update: Uint8Array, byClient: ReadonlyMap<number, readonly Struct[]>): boolean {
  return decoding.readVarUint(decoding.createDecoder(update)) === byClient.size;
}

function endsOf(byClient: ReadonlyMap<number, readonly Struct[]>): UpdateEnds {
  const ends = new Map<number, number>();
  for (const [client, structs] of byClient) {
    const last = structs.at(-1)!;
    ends.set(client, last.id.clock + last.length);
  }
  return ends;
}

/** Follows parents and origins with a list instead of recursion, so the stack does not grow with the nesting. */
function isTooDeep(structs: readonly Struct[], byClient: ReadonlyMap<number, readonly Struct[]>, doc: Y.Doc | undefined): boolean {
  /** 0: visited, and not known yet. Structs that need each other stay at 0, and Yjs never integrates them. */
  const nestings = new Map<Struct, number>();
  const nestingWithin = (struct: Struct): number => {
    const path: { readonly struct: Struct; readonly step: number }[] = [];
    let at: Struct | undefined = struct;
    let nesting = 0;
    while (at !== undefined) {
      const known = nestings.get(at);
      if (known !== undefined) {
        nesting = known;
        break;
      }
      nestings.set(at, 0);
      const base = baseOf(at);
      path.push({ struct: at, step: base?.step ?? 1 });
      at = base && find(byClient, base.id);
      if (at === undefined && base !== undefined) nesting = nestingInDocument(base.id, doc);
    }
    for (const visited of path.reverse()) {
      nesting += visited.step;
      nestings.set(visited.struct, nesting);
    }
    return nesting;
  };
  return structs.some(
    (struct) => struct instanceof Y.Item && struct.content instanceof Y.ContentType && nestingWithin(struct) > NESTING_MAX,
  );
}

/** The item whose nesting determines that of this one, and the additional depth of this one. Undefined: it is in a root type. */
function baseOf(struct: Struct): { readonly id: Y.ID; readonly step: 0 | 1 } | undefined {
  if (!(struct instanceof Y.Item)) return undefined;
  if (struct.parent instanceof Y.ID) return { id: struct.parent, step: 1 };
  const beside = struct.origin ?? struct.rightOrigin;
  return struct.parent === null && beside !== null ? { id: beside, step: 0 } : undefined;
}

function find(byClient: ReadonlyMap<number, readonly Struct[]>, { client, clock }: Y.ID): Struct | undefined {
  const structs = byClient.get(client);
  if (structs === undefined) return undefined;
  let [low, high] = [0, structs.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const { id, length } = structs[middle]!;
    if (clock < id.clock) high = middle - 1;
    else if (clock >= id.clock + length) low = middle + 1;
    else return structs[middle];
  }
  return undefined;
}

/** 0 if the document lacks the item: its nesting is checked when Yjs integrates it. */
function nestingInDocument(id: Y.ID, doc: Y.Doc | undefined): number {
  if (doc === undefined || id.clock >= Y.getState(doc.store, id.client)) return 0;
  const item: unknown = Y.getItem(doc.store, id);
  return item instanceof Y.Item ? nestingOf(item) : 0;
}

/** Plain values are decoded with recursion by Yjs, and by applications. */
function isValueTooDeep(content: Y.Item["content"]): boolean {
  const values = content instanceof Y.ContentAny ? content.arr : content instanceof Y.ContentEmbed ? [content.embed] : [];
  let level: readonly object[] = values.filter(isObject);
  for (let nesting = 0; level.length > 0; nesting += 1) {
    if (nesting > NESTING_MAX) return true;
    level = level.flatMap((value) => (value instanceof Uint8Array ? [] : Object.values(value).filter(isObject)));
  }
  return false;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Throws `UpdateRefused`. Integrates the update into an empty document, because its limit must not depend on any other. */
function measureConflicts(update: Uint8Array): void {
  const doc = new Y.Doc({ gc: false });
  try {
    withinBounds(() => Y.applyUpdate(doc, update));
  } finally {
    doc.destroy();
  }
}
