import fc from "fast-check";
import { expect, test } from "vitest";

import { encodeFrame } from "../../shared/wire/codec.ts";
import { otherProtocolRefusal } from "./other-protocol.ts";

test("[SES102] no HELLO with readable text is mistaken for another protocol, whatever the lengths of its token and name", () => {
  const text = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 300 }),
    fc.integer({ min: 0, max: 20_000 }).map((length) => "t".repeat(length)),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), text, text, (version, token, agent) => {
      expect(otherProtocolRefusal(encodeFrame({ type: "hello", version, token, agent }), "why")).toBeUndefined();
    }),
  );
});
