import { expect, test } from "vitest";

import { networkOf, watchNetwork } from "./network-news.ts";

class FakePage extends EventTarget {
  visibilityState: DocumentVisibilityState = "visible";
}

test("[NET1] a browser's network and a page that wakes up are told, until nobody listens", () => {
  const [window, page] = [new EventTarget(), new FakePage()];
  const told: string[] = [];
  const stop = networkOf(window, page)((news) => told.push(news));
  const fireAll = (): void => {
    for (const event of ["offline", "online", "pageshow"]) window.dispatchEvent(new Event(event));
    page.dispatchEvent(new Event("resume"));
    for (const state of ["hidden", "visible"] as const) {
      page.visibilityState = state;
      page.dispatchEvent(new Event("visibilitychange"));
    }
  };
  fireAll();
  expect(told).toEqual(["doubtful", "back", "doubtful", "doubtful", "doubtful"]);
  stop();
  fireAll();
  expect(told).toHaveLength(5);
});

test("[NET2] where there is no window nothing is listened to", () => {
  expect(watchNetwork(() => expect.unreachable())).not.toThrow();
});
