/**
 * The payloads of simulated edits: keystrokes of four bytes each, the last of which is 0. Other groups of four bytes
 * belong to a pasted text. Like a document's updates, payloads can be merged and split.
 */

import { joinBytes } from "../../shared/collections/bytes.ts";
import { EMPTY_STATE } from "../../document-service/merge.ts";
import type { EditFormat } from "../../client/room/unsent.ts";

export type Keystroke = { readonly author: number; readonly index: number };

const BYTES = 4;

export function keystroke({ author, index }: Keystroke): Uint8Array {
  return Uint8Array.of(author, index >> 8, index & 255, 0);
}

/** Above the largest pasted text and the keystrokes that a client merges with it. */
export const PASTED_EDIT_BYTES_MAX = 26_000;

/** A keystroke, and after it numbered groups that are no keystrokes. So each byte has its place. */
export function pastedText(typed: Keystroke, groups: number): Uint8Array {
  const [author, high, low] = keystroke(typed);
  return Uint8Array.from(Array.from({ length: groups }, (_, group) => [author!, high!, low!, group === 0 ? 0 : 1 + (group % 255)]).flat());
}

/** Author numbers of the writers in `makers.ts`, which are not tabs. */
export const MAKERS_FROM = 240;
export const MAKERS = 2;

export function isMaker(author: number | undefined): boolean {
  return author !== undefined && author >= MAKERS_FROM && author < MAKERS_FROM + MAKERS;
}

export function keystrokesIn(payload: Uint8Array): Keystroke[] {
  const keystrokes: Keystroke[] = [];
  for (let at = 0; at < payload.length; at += BYTES)
    if (payload[at + 3] === 0) keystrokes.push({ author: payload[at]!, index: payload[at + 1]! * 256 + payload[at + 2]! });
  return keystrokes;
}

/** The payload, divided before each keystroke. */
export function textsIn(payload: Uint8Array): Uint8Array[] {
  const texts: Uint8Array[] = [];
  let start = 0;
  for (let at = BYTES; at <= payload.length; at += BYTES) {
    if (at < payload.length && payload[at + 3] !== 0) continue;
    texts.push(payload.subarray(start, at));
    start = at;
  }
  return texts;
}

/** Whether the payload has the complete text where its first keystroke is. True: the payload does not have this keystroke. */
export function hasComplete(payload: Uint8Array, text: Uint8Array): boolean {
  for (let at = 0; at < payload.length; at += BYTES)
    if (payload[at] === text[0] && payload[at + 1] === text[1] && payload[at + 2] === text[2])
      return text.every((byte, index) => payload[at + index] === byte);
  return true;
}

export function concatenated(payloads: readonly Uint8Array[]): Uint8Array {
  return joinBytes(
    payloads,
    payloads.reduce((bytes, { byteLength }) => bytes + byteLength, 0),
  );
}

export function contentIn(edits: readonly { readonly payload: Uint8Array }[]): Uint8Array {
  return concatenated(edits.map(({ payload }) => payload));
}

export function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}

export const keystrokeEdits: EditFormat = {
  merge: concatenated,
  split: (payload, bytesMax) => {
    const pieceBytes = Math.floor(bytesMax / BYTES) * BYTES;
    return Array.from({ length: Math.ceil(payload.length / pieceBytes) }, (_, index) =>
      payload.slice(index * pieceBytes, (index + 1) * pieceBytes),
    );
  },
};

/** Reads the keystrokes of a document's state, which follow the bytes of an empty document. */
export function contentOf(state: Uint8Array): Uint8Array {
  return state.slice(EMPTY_STATE.byteLength);
}
