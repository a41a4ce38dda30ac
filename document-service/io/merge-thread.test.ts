import { expect, test } from "vitest";

import { pack, unpack } from "./merge-thread.ts";

test("[MTH1] edits come out as they went in", () => {
  const edits = [Uint8Array.of(1, 2, 3), Uint8Array.of(), Uint8Array.of(4)];
  expect(unpack(pack(edits))).toEqual(edits);
});
