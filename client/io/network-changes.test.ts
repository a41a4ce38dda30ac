import { expect, test } from "vitest";

import { networkOf, watchNetwork } from "./network-changes.ts";

class FakePage extends EventTarget {
  visibilityState: DocumentVisibilityState = "visible";
}

test("[NET1] the browser's network events and a page that wakes up are reported until the last listener unsubscribes", () => {
  const [window, page] = [new EventTarget(), new FakePage()];
  const changes: string[] = [];
  const stop = networkOf(window, page)((change) => changes.push(change));
  const fireAll = (): void => {
    for (const event of ["offline", "online", "pageshow"]) window.dispatchEvent(new Event(event));
    page.dispatchEvent(new Event("resume"));
    for (const state of ["hidden", "visible"] as const) {
      page.visibilityState = state;
      page.dispatchEvent(new Event("visibilitychange"));
    }
  };
  fireAll();
  expect(changes).toEqual(["doubtful", "back", "doubtful", "doubtful", "doubtful"]);
  stop();
  fireAll();
  expect(changes).toHaveLength(5);
});

test("[NET2] without a window no listener is added", () => {
  expect(watchNetwork(() => expect.unreachable())).not.toThrow();
});
