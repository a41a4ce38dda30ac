/** The payloads of simulated edits: keystrokes of four bytes each. Like a document's updates, payloads can be merged and split. */

import { EMPTY_STATE } from "../../document-service/merge.ts";
import type { EditFormat } from "../../client/room/unsent.ts";

export type Keystroke = { readonly author: number; readonly index: number };

const BYTES = 4;

export function keystroke({ author, index }: Keystroke): Uint8Array {
  return Uint8Array.of(author, index >> 8, index & 255, 0);
}

/** Author numbers of the writers in `makers.ts`, which are not tabs. */
export const MAKERS_FROM = 240;
export const MAKERS = 2;

export function isMaker(author: number | undefined): boolean {
  return author !== undefined && author >= MAKERS_FROM && author < MAKERS_FROM + MAKERS;
}

export function keystrokesIn(payload: Uint8Array): Keystroke[] {
  return Array.from({ length: payload.length / BYTES }, (_, at) => ({
    author: payload[at * BYTES]!,
    index: payload[at * BYTES + 1]! * 256 + payload[at * BYTES + 2]!,
  }));
}

export const keystrokeEdits: EditFormat = {
  merge: (payloads) => Uint8Array.from(payloads.flatMap((payload) => [...payload])),
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
