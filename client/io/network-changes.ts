/** Reports the browser's network events and pages that wake up. Other platforms report nothing. */

import type { WatchNetwork } from "../ports.ts";

type Page = EventTarget & { readonly visibilityState: DocumentVisibilityState };

export const watchNetwork: WatchNetwork =
  typeof window === "undefined" || typeof document === "undefined" ? () => () => {} : networkOf(window, document);

export function networkOf(window: EventTarget, page: Page): WatchNetwork {
  return (report) => {
    const back = (): void => report("back");
    const doubt = (): void => report("doubtful");
    const seen = (): void => {
      if (page.visibilityState === "visible") doubt();
    };
    const listeners = [
      [window, "online", back],
      [window, "offline", doubt],
      [window, "pageshow", doubt], // The page returns from the back/forward cache.
      [page, "resume", doubt],
      [page, "visibilitychange", seen],
    ] as const;
    for (const [target, event, listener] of listeners) target.addEventListener(event, listener);
    return () => {
      for (const [target, event, listener] of listeners) target.removeEventListener(event, listener);
    };
  };
}
