import { expect, test, vi } from "vitest";

import { systemClock } from "./system-clock.ts";

test("a wait that is longer than a timer of Node can be does not end at once", () => {
  vi.useFakeTimers();
  try {
    const run = vi.fn<() => void>();
    systemClock.after(60 * 86_400_000, run);
    vi.advanceTimersByTime(3_600_000);
    expect(run).not.toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
  }
});
