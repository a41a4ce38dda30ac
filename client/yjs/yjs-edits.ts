/** Yjs updates as edits: how several are one, how a large one is cut, and what a document has that a room has not. Rules YED1 to YED6. */

import * as encoding from "lib0/encoding";
import * as Y from "yjs";

import type { EditFormat } from "../room/unsent.ts";

export const yjsEdits: EditFormat = { merge: (payloads) => Y.mergeUpdates([...payloads]), condense, split: splitEdit };

/** Without what was deleted. Bytes that are no Yjs update are in no document, and left out. */
function condense(payloads: readonly Uint8Array[]): Uint8Array {
  const doc = new Y.Doc();
  doc.transact(() => {
    for (const payload of payloads) if (isUpdate(payload)) Y.applyUpdate(doc, payload);
  });
  const condensed = Y.encodeStateAsUpdate(doc);
  doc.destroy();
  return condensed;
}

/** What the document has beyond these edits, deletions included; undefined if that is nothing. */
export function lackingIn(received: readonly Uint8Array[], doc: Y.Doc): Uint8Array | undefined {
  const theirs = new Y.Doc();
  theirs.transact(() => {
    for (const edit of received) Y.applyUpdate(theirs, edit);
  });
  const lacking = Y.encodeStateAsUpdate(doc, Y.encodeStateVector(theirs));
  return Y.snapshotContainsUpdate(Y.snapshot(theirs), lacking) ? undefined : lacking;
}

/** How much of each client's content a peer has; clients not named: all of it. */
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
  return Y.encodeStateAsUpdate(doc, Y.encodeStateVector(known));
}

/** Whether the document has what these bytes say: others it refused. */
export function isUpdate(payload: Uint8Array): boolean {
  try {
    Y.decodeUpdate(payload);
    return true;
  } catch {
    return false; // Yjs throws all kinds of errors on bytes that are no update of its own.
  }
}

/** The update without structs and deletions. It is not sent: a room cannot tell it from other bytes of its kind. */
export function saysNothing(update: Uint8Array): boolean {
  return update.byteLength === 2 && update[0] === 0 && update[1] === 0;
}

/** As when Yjs cleans up formatting that says nothing any more. */
export function deletesOnlyMarks(transaction: Y.Transaction): boolean {
  const { deleteSet, beforeState, afterState } = transaction;
  for (const [client, clock] of afterState) if (clock !== (beforeState.get(client) ?? 0)) return false;
  let isOnly = deleteSet.clients.size > 0;
  Y.iterateDeletedStructs(transaction, deleteSet, (struct) => {
    isOnly &&= struct instanceof Y.Item && struct.content instanceof Y.ContentFormat;
  });
  return isOnly;
}

/** An update's header, and a client's before its structs, take at most this. */
const HEADER_BYTES = 32;
const NO_STRUCTS = 0;
const NO_DELETIONS = 0;

/**
 * Pieces of structs in their order, the deletions behind them. Deletions are cut wherever it is needed. What is inserted
 * at once is one struct: text and lists are cut, anything else that is too large cannot be.
 */
export function splitEdit(update: Uint8Array, bytesMax: number): readonly Uint8Array[] | undefined {
  const { structs: whole, ds } = Y.decodeUpdate(update);
  const structs = whole.flatMap((struct) => cutStruct(struct, bytesMax - 2 * HEADER_BYTES));
  const pieces: Uint8Array[] = [];
  let runs: Run[] = [];
  let bytes = HEADER_BYTES;
  const finishPiece = (): void => {
    if (runs.length > 0) pieces.push(encodePiece(runs));
    runs = [];
    bytes = HEADER_BYTES;
  };

  for (const struct of structs) {
    if (struct instanceof Y.Skip) {
      finishPiece(); // Behind a hole begins another piece.
      continue;
    }
    const encoded = encode((encoder) => struct.write(encoder, 0));
    const { client, clock } = struct.id;
    if (encoded.byteLength + 2 * HEADER_BYTES > bytesMax) return undefined;
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

type Struct = ReturnType<typeof Y.decodeUpdate>["structs"][number];

/** An origin on each side, a parent and its key beside the content. */
const STRUCT_BYTES = 64;
/** Of one UTF-16 code unit in UTF-8. */
const UNIT_BYTES_MAX = 3;

/** As Yjs cuts it when somebody types into its middle: what follows hangs on the last of what is before it. */
function cutStruct(struct: Struct, bytesMax: number): Struct[] {
  if (!(struct instanceof Y.Item) || encode((encoder) => struct.write(encoder, 0)).byteLength <= bytesMax) return [struct];
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

/** Never between the two halves of a character. */
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
  return encode((encoder) => content.write(encoder, 0)).byteLength;
}

/** Structs of one client whose clocks follow each other. */
type Run = { readonly client: number; readonly clock: number; readonly structs: Uint8Array[] };
type DeleteSet = ReturnType<typeof Y.decodeUpdate>["ds"];
type Ranges = NonNullable<ReturnType<DeleteSet["clients"]["get"]>>;
type Deletion = { readonly client: number; readonly range: Ranges[number] };

function encodePiece(runs: readonly Run[]): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, runs.length);
    for (const { client, clock, structs } of runs) {
      encoding.writeVarUint(out, structs.length);
      encoding.writeVarUint(out, client);
      encoding.writeVarUint(out, clock);
      for (const struct of structs) encoding.writeUint8Array(out, struct);
    }
    encoding.writeVarUint(out, NO_DELETIONS);
  });
}

/** Halved until each piece fits: a single one always does. */
function encodeDeletions(deletions: readonly Deletion[], bytesMax: number): Uint8Array[] {
  const whole = encodeDeleteSet(deletions);
  if (whole.byteLength <= bytesMax || deletions.length === 1) return [whole];
  const middle = deletions.length >> 1;
  return [deletions.slice(0, middle), deletions.slice(middle)].flatMap((half) => encodeDeletions(half, bytesMax));
}

function encodeDeleteSet(deletions: readonly Deletion[]): Uint8Array {
  const rangesOf = new Map<number, Ranges>();
  for (const { client, range } of deletions) {
    const ranges = rangesOf.get(client);
    if (ranges === undefined) rangesOf.set(client, [range]);
    else ranges.push(range);
  }
  return encoding.encode((out) => {
    encoding.writeVarUint(out, NO_STRUCTS);
    encoding.writeVarUint(out, rangesOf.size);
    for (const [client, ranges] of rangesOf) {
      encoding.writeVarUint(out, client);
      encoding.writeVarUint(out, ranges.length);
      for (const { clock, len } of ranges) {
        encoding.writeVarUint(out, clock);
        encoding.writeVarUint(out, len);
      }
    }
  });
}

function encode(write: (encoder: Y.UpdateEncoderV1) => void): Uint8Array {
  const encoder = new Y.UpdateEncoderV1();
  write(encoder);
  return encoder.toUint8Array();
}
