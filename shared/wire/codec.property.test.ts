import fc from "fast-check";
import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import { committedEdits, tentativeEdit } from "../../test/wire/arbitraries.ts";
import { decodeFrame, encodeFrame } from "./codec.ts";
import { readCommittedEdits, readRange, writeCommittedEdits } from "./committed-edits.ts";

test("[WIRE11] committed edits decode to what was encoded, and their position decodes before the rest", () => {
  fc.assert(
    fc.property(committedEdits, (edits) => {
      const bytes = encoding.encode((out) => writeCommittedEdits(out, edits));
      const input = decoding.createDecoder(bytes);
      expect(readCommittedEdits(input)).toEqual(edits);
      expect(decoding.hasContent(input)).toBe(false);
      expect(readRange(decoding.createDecoder(bytes))).toEqual({ epoch: edits.epoch, firstSeq: edits.firstSeq });
    }),
  );
});

test("[WIRE38] a resubmit contains every byte of the tentative edit", () => {
  fc.assert(
    fc.property(tentativeEdit, (edit) => {
      const received = decodeFrame(encodeFrame({ type: "tentative", channel: 1, edit }));
      if (received?.type !== "tentative") throw new Error("not read as tentative");
      expect(decodeFrame(encodeFrame({ type: "resubmit", channel: 9, edit: received.edit }))).toEqual({
        type: "resubmit",
        channel: 9,
        edit,
      });
    }),
  );
});
