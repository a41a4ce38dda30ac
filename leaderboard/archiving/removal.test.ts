import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { KEPT_MS, windowsAt } from "../boards/windows.ts";
import { windowsInRedis } from "./removal.ts";

const HOUR_MS = 3_600_000;
const NOW = Date.UTC(2028, 11, 31, 23, 59) as UnixMillis;

test("[REM1] a removal covers every window that Redis may have of a room, each once, and the next windows", () => {
  const ids = windowsInRedis(NOW).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (let at = NOW - 400 * 24 * HOUR_MS; at <= NOW + HOUR_MS; at += HOUR_MS) {
    const kept = windowsAt(at as UnixMillis).filter(({ kind, start }) => start + KEPT_MS[kind] >= NOW);
    expect(ids).toEqual(expect.arrayContaining(kept.map(({ id }) => id)));
  }
  expect(ids.length).toBeLessThan(60);
});
