import { expect, test } from "vitest";

import { OUTBOX } from "../client/defaults.ts";
import { sendPieces, UNSAVED_BYTES_MAX } from "./import.ts";

test("[IMP13] of a document that is larger than what may wait in a room, a part waits at a time, and all of it is saved in order", async () => {
  const piece = new Uint8Array(60_000);
  const pieces = Array.from({ length: Math.ceil((1.5 * OUTBOX.unsentBytesMax) / piece.byteLength) }, () => piece.slice());
  const sent: Uint8Array[] = [];
  let [waiting, most] = [0, 0];
  const send = (one: Uint8Array): void => {
    sent.push(one);
    waiting += one.byteLength;
    most = Math.max(most, waiting);
  };
  await sendPieces(pieces, send, async () => void (waiting = 0));
  expect([sent.length, waiting, sent.every((one, index) => one === pieces[index])]).toEqual([pieces.length, 0, true]);
  expect(most).toBeLessThan(UNSAVED_BYTES_MAX + piece.byteLength);
  expect(most).toBeLessThan(OUTBOX.unsentBytesMax);
});
