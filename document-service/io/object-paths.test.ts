import { expect, test } from "vitest";

import { parseRoomId, parseTenantId, roomKey } from "../../shared/ids.ts";
import { nameAt, pathOf } from "./object-paths.ts";

const keyOf = (room: string) => roomKey(parseTenantId("t".repeat(64))!, parseRoomId(room)!);

test.each(["notes", "a.b/c d", "é".repeat(20), "…".repeat(128), "😀".repeat(64), "~%=".repeat(42), "x".repeat(128)])(
  "[OBP1] a room %s has objects whose names fit every store, and are found again",
  (room) => {
    const name = `${keyOf(room)}/123456-1234567890-11111111-2222-3333-4444-555555555555-12-345678`;
    const path = pathOf(name);
    expect(nameAt(path)).toBe(name);
    expect(path.length).toBeLessThanOrEqual(1_024);
    expect(path.split("/").every((part) => part.length > 0 && part.length <= 255)).toBe(true);
  },
);
