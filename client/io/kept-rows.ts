/** What a store in browsers keeps of one room, as rows: the document in pieces that join on to each other, and by page what waits. */

import type { Position, Seq } from "../../shared/ids.ts";
import type { DocumentChange, KeptDocument, KeptEdit, StoredRoom } from "../keeping/edit-store.ts";
import type { Head, Reading, Writing } from "./kept-database.ts";
import type { PageId } from "./page-locks.ts";

export type Condense = StoredRoom["condense"];
/** Of a page that is gone. `edit`: as this page's own. */
export type Left = { readonly page: PageId; readonly place: number; readonly edit: KeptEdit };

/** Pieces are condensed into one when they have as many bytes as the last such one, and not for less than this. */
const CONDENSE_BYTES_MIN = 65_536;

/** By pages that are gone, in their order. */
export async function leftBehind(transaction: Reading, key: string, live: ReadonlySet<PageId>): Promise<Left[]> {
  const edits = (await transaction.objectStore("edits").getAll(allOf(key))).filter((edit) => !live.has(edit.page));
  return edits.map(({ page, place, payload, made, sent }, index) => ({ page, place, edit: { place: index + 1, payload, made, sent } }));
}

export async function takeOver(
  transaction: Writing,
  { key, page }: { readonly key: string; readonly page: PageId },
  left: readonly Left[],
): Promise<void> {
  const edits = transaction.objectStore("edits");
  for (const { page: from, place } of left) await edits.delete([key, from, place]);
  for (const { edit } of left) await edits.put({ ...edit, room: key, page });
}

/** `replace`: where it came in several pieces. */
export async function readDocument(
  transaction: Reading,
  key: string,
  condense: NonNullable<Condense>,
  replace: (head: Head, payload: Uint8Array) => Promise<void>,
): Promise<KeptDocument | undefined> {
  const head = await transaction.objectStore("heads").get(key);
  if (head === undefined) return undefined;
  const all = (await transaction.objectStore("pieces").getAll(allOf(key))).flatMap(({ payloads }) => payloads);
  const [only] = all;
  const payload = only !== undefined && all.length === 1 ? only : ownBytes(condense(all));
  if (payload !== only) await replace(head, payload);
  return { position: head.position, last: head.last, payload };
}

export async function writeDocument(
  transaction: Writing,
  key: string,
  change: DocumentChange,
  condense: NonNullable<Condense>,
): Promise<void> {
  const [heads, pieces] = [transaction.objectStore("heads"), transaction.objectStore("pieces")];
  const before = await heads.get(key);
  switch (change.kind) {
    case "forgotten":
      await heads.delete(key);
      await pieces.delete(allOf(key));
      return;
    case "begun":
      if (before !== undefined && isBehind(change.position, before.position)) return;
      await pieces.delete(allOf(key));
      await heads.put({
        room: key,
        position: change.position,
        last: change.last,
        place: 1,
        bytes: 0,
        condensedBytes: change.payload.byteLength,
      });
      await pieces.put({ room: key, place: 1, payloads: [ownBytes(change.payload)] });
      return;
    case "continued": {
      const { position, after, last } = change;
      const from = before?.position.seq ?? (0 as Seq);
      if (from < after || position.seq <= from || position.epoch < (before?.position.epoch ?? 0)) return; // It leaves a hole, or is known.
      const payloads = change.payloads.slice(from - after).map(ownBytes);
      const head = {
        room: key,
        position,
        last,
        place: (before?.place ?? 0) + 1,
        bytes: (before?.bytes ?? 0) + bytesOf(payloads),
        condensedBytes: before?.condensedBytes ?? 0,
      };
      await heads.put(head);
      await pieces.put({ room: key, place: head.place, payloads });
      if (head.bytes > Math.max(CONDENSE_BYTES_MIN, head.condensedBytes)) {
        await readDocument(transaction, key, condense, (of, payload) => replacePieces(transaction, of, payload));
      }
    }
  }
}

/** All pieces as one, which takes their place. */
export async function replacePieces(transaction: Writing, head: Head, payload: Uint8Array): Promise<void> {
  const pieces = transaction.objectStore("pieces");
  await pieces.delete(allOf(head.room));
  await pieces.put({ room: head.room, place: head.place, payloads: [payload] });
  await transaction.objectStore("heads").put({ ...head, bytes: 0, condensedBytes: payload.byteLength });
}

function isBehind(one: Position, other: Position): boolean {
  return one.seq <= other.seq && one.epoch <= other.epoch;
}

/** Every row of the room: an array is behind all numbers and texts. */
export function allOf(key: string): IDBKeyRange {
  return IDBKeyRange.bound([key], [key, []]);
}

/** A view of a larger buffer would be stored with all of it. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}

function bytesOf(payloads: readonly Uint8Array[]): number {
  return payloads.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
