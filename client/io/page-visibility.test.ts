import { expect, test } from "vitest";

import { visibilityOf, watchVisibility } from "./page-visibility.ts";

class FakePage extends EventTarget {
  visibilityState: DocumentVisibilityState = "hidden";
}

test("[VIS1] the page's visibility is reported at once and when it changes, until the watch ends", () => {
  const page = new FakePage();
  const reports: boolean[] = [];
  const stop = visibilityOf(page)((isVisible) => reports.push(isVisible));
  const become = (state: DocumentVisibilityState): void => {
    page.visibilityState = state;
    page.dispatchEvent(new Event("visibilitychange"));
  };
  become("visible");
  become("hidden");
  expect(reports).toEqual([false, true, false]);
  stop();
  become("visible");
  expect(reports).toHaveLength(3);
});

test("[VIS2] without a document nothing is reported", () => {
  expect(watchVisibility(() => expect.unreachable())).not.toThrow();
});
