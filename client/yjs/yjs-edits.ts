/**
 * Yjs updates as edits: merges several, cuts large ones, and computes the content of a document that a room lacks.
 * Rules YED1 to YED7.
 */

import * as Y from "yjs";

import { checkUpdate, type Struct } from "../../shared/yjs/checked-update.ts";
import { type DeletedRanges, encodedStruct, type StructRun, writtenUpdate } from "../../shared/yjs/written-update.ts";
import { type EditFormat, PIECE_BYTES_MAX } from "../room/unsent.ts";

export const yjsEdits: EditFormat = { merge: (payloads) => Y.mergeUpdates([...payloads]), condense, split: splitEdit };

/** Leaves out deleted content, and bytes that are not a Yjs update, because no document contains them. */
function condense(payloads: readonly Uint8Array[]): Uint8Array {
  const doc = new Y.Doc();
  doc.transact(() => {
    for (const payload of payloads) if (isUpdate(payload)) Y.applyUpdate(doc, payload);
  });
  const condensed = Y.encodeStateAsUpdate(doc);
  doc.destroy();
  return condensed;
}

/** Returns the content of the document that these edits do not contain, deletions included. Undefined: nothing. */
export function missingUpdate(received: readonly Uint8Array[], doc: Y.Doc): Uint8Array | undefined {
  const theirs = new Y.Doc();
  theirs.transact(() => {
    for (const edit of received) Y.applyUpdate(theirs, edit);
  });
  const { store } = theirs;
  const hasPending = store.pendingStructs !== null || store.pendingDs !== null;
  const lacking = (hasPending ? integratedContent : Y.encodeStateAsUpdate)(doc, Y.encodeStateVector(theirs));
  return Y.snapshotContainsUpdate(Y.snapshot(theirs), lacking) ? undefined : lacking;
}

/** The amount of each client's content that a peer has. If a client is not listed, the peer has everything from it. */
export type Clocks = ReadonlyMap<number, number>;

/** Where the content of these edits begins. */
export function clocksBefore(edits: readonly Uint8Array[]): Clocks {
  const before = new Map<number, number>();
  for (const edit of edits) {
    for (const [client, clock] of Y.parseUpdateMeta(edit).from) before.set(client, Math.min(clock, before.get(client) ?? clock));
  }
  return before;
}

export function contentSince(clocks: Clocks, doc: Y.Doc): Uint8Array {
  const known = Y.decodeStateVector(Y.encodeStateVector(doc));
  for (const [client, clock] of clocks) known.set(client, Math.min(clock, known.get(client) ?? 0));
  return integratedContent(doc, Y.encodeStateVector(known));
}

/**
 * The document's content beyond the state vector, without pending content. `Y.encodeStateAsUpdate` adds that. If a room
 * has pending content, each of its documents would send it again.
 */
function integratedContent(doc: Y.Doc, stateVector: Uint8Array): Uint8Array {
  const { store } = doc;
  const { pendingStructs, pendingDs } = store;
  store.pendingStructs = store.pendingDs = null;
  try {
    return Y.encodeStateAsUpdate(doc, stateVector);
  } finally {
    [store.pendingStructs, store.pendingDs] = [pendingStructs, pendingDs];
  }
}

/** Whether the bytes are a Yjs update. A document contains only such edits. */
export function isUpdate(payload: Uint8Array): boolean {
  try {
    Y.decodeUpdate(payload);
    return true;
  } catch {
    return false; // Yjs throws errors of any kind on bytes that are no update.
  }
}

/** The update without structs and deletions. */
export const NO_CONTENT: Uint8Array = new Uint8Array([0, 0]);

/**
 * Whether the update has neither structs nor deletions. Such an update is not sent, because a room cannot distinguish
 * it from other bytes.
 */
export function isEmptyUpdate(update: Uint8Array): boolean {
  return update.byteLength === 2 && update[0] === 0 && update[1] === 0;
}

/** True when Yjs removes formatting marks that have no effect any more. */
export function deletesOnlyMarks(transaction: Y.Transaction): boolean {
  const { deleteSet, beforeState, afterState } = transaction;
  for (const [client, clock] of afterState) if (clock !== (beforeState.get(client) ?? 0)) return false;
  let isOnly = deleteSet.clients.size > 0;
  Y.iterateDeletedStructs(transaction, deleteSet, (struct) => {
    isOnly &&= struct instanceof Y.Item && struct.content instanceof Y.ContentFormat;
  });
  return isOnly;
}

/**
 * Returns the change as edits that every document of a room accepts, or the reason why that is impossible. The number of
 * structs is limited for each edit: only a change that exceeds it is cut, for example the import of a large table.
 */
export function acceptedEdits(change: Uint8Array, doc: Y.Doc): readonly Uint8Array[] | string {
  const check = checkUpdate(change, doc);
  if (check.kind === "fit") return [change];
  const pieces = splitEdit(change, PIECE_BYTES_MAX) ?? [change];
  return pieces.every((piece) => checkUpdate(piece, doc).kind === "fit") ? pieces : check.why;
}

/** Maximum bytes of an update's header together with one client's header. */
const HEADER_BYTES = 32;
const NO_DELETIONS: DeletedRanges = new Map();

/**
 * Returns pieces with the structs in order and then the deletions. Deletions can be cut anywhere. An insertion is one
 * struct: text and lists can be cut, any other struct that is too large cannot. It becomes a piece by itself of at most
 * `uncutBytesMax`. Undefined: it is larger.
 */
export function splitEdit(update: Uint8Array, bytesMax: number, uncutBytesMax: number = bytesMax): readonly Uint8Array[] | undefined {
  const { structs: whole, ds } = Y.decodeUpdate(update);
  const structs = whole.flatMap((struct) => cutStruct(struct, bytesMax - 2 * HEADER_BYTES));
  const pieces: Uint8Array[] = [];
  let runs: (StructRun & { readonly structs: Uint8Array[] })[] = [];
  let bytes = HEADER_BYTES;
  const finishPiece = (): void => {
    if (runs.length > 0) pieces.push(writtenUpdate(runs, NO_DELETIONS));
    runs = [];
    bytes = HEADER_BYTES;
  };

  for (const struct of structs) {
    if (struct instanceof Y.Skip) {
      finishPiece(); // A new piece begins after a hole.
      continue;
    }
    const encoded = encodedStruct(struct);
    const { client, clock } = struct.id;
    if (encoded.byteLength + 2 * HEADER_BYTES > Math.max(bytesMax, uncutBytesMax)) return undefined;
    if (bytes + HEADER_BYTES + encoded.byteLength > bytesMax) finishPiece();
    const run = runs.at(-1);
    if (run?.client === client) {
      run.structs.push(encoded);
      bytes += encoded.byteLength;
    } else {
      runs.push({ client, clock, structs: [encoded] });
      bytes += HEADER_BYTES + encoded.byteLength;
    }
  }
  finishPiece();

  const deletions = [...ds.clients].flatMap(([client, ranges]) => ranges.map((range) => ({ client, range })));
  return deletions.length === 0 ? pieces : [...pieces, ...encodeDeletions(deletions, bytesMax)];
}

/** Maximum bytes in addition to the content: an origin on each side, a parent and its key. */
const STRUCT_BYTES = 64;
/** Maximum UTF-8 bytes of one UTF-16 code unit. */
const UNIT_BYTES_MAX = 3;

/** Cuts like Yjs when a user types into the middle: the second part's origin is the end of the first. */
function cutStruct(struct: Struct, bytesMax: number): Struct[] {
  if (!(struct instanceof Y.Item) || encodedStruct(struct).byteLength <= bytesMax) return [struct];
  const {
    id: { client, clock },
    origin,
    rightOrigin,
    parent,
    parentSub,
    content,
  } = struct;
  const parts: Struct[] = [];
  let start = 0;
  for (const part of cutContent(content, bytesMax - STRUCT_BYTES)) {
    const before = start === 0 ? origin : Y.createID(client, clock + start - 1);
    parts.push(new Y.Item(Y.createID(client, clock + start), null, before, null, rightOrigin, parent, parentSub, part));
    start += part.getLength();
  }
  return parts;
}

function cutContent(content: Y.Item["content"], bytesMax: number): Y.Item["content"][] {
  if (content instanceof Y.ContentString) {
    return cutText(content.str, Math.floor(bytesMax / UNIT_BYTES_MAX)).map((text) => new Y.ContentString(text));
  }
  if (content instanceof Y.ContentAny && content.arr.length > 1) {
    const middle = content.arr.length >> 1;
    return [content.arr.slice(0, middle), content.arr.slice(middle)]
      .map((entries) => new Y.ContentAny(entries))
      .flatMap((half) => (sizeOf(half) <= bytesMax ? [half] : cutContent(half, bytesMax)));
  }
  return [content];
}

/** Never cuts between the two halves of a character. */
function cutText(text: string, unitsMax: number): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = Math.min(text.length, start + Math.max(2, unitsMax));
    const isInside = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
    parts.push(text.slice(start, isInside ? end - 1 : end));
    start = isInside ? end - 1 : end;
  }
  return parts;
}

function sizeOf(content: Y.ContentAny): number {
  const encoder = new Y.UpdateEncoderV1();
  content.write(encoder, 0);
  return encoder.toUint8Array().byteLength;
}

type DeleteSet = ReturnType<typeof Y.decodeUpdate>["ds"];
type Ranges = NonNullable<ReturnType<DeleteSet["clients"]["get"]>>;
type Deletion = { readonly client: number; readonly range: Ranges[number] };

/** Halves the deletions until each piece fits. A single deletion always fits. */
function encodeDeletions(deletions: readonly Deletion[], bytesMax: number): Uint8Array[] {
  const whole = writtenUpdate([], rangesOf(deletions));
  if (whole.byteLength <= bytesMax || deletions.length === 1) return [whole];
  const middle = deletions.length >> 1;
  return [deletions.slice(0, middle), deletions.slice(middle)].flatMap((half) => encodeDeletions(half, bytesMax));
}

function rangesOf(deletions: readonly Deletion[]): DeletedRanges {
  const byClient = new Map<number, Ranges>();
  for (const { client, range } of deletions) {
    const ranges = byClient.get(client);
    if (ranges === undefined) byClient.set(client, [range]);
    else ranges.push(range);
  }
  return byClient;
}
