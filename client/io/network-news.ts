/** What a browser says of its network, and of a page that slept. Anywhere else there is nothing to hear. */

import type { WatchNetwork } from "../ports.ts";

type Page = EventTarget & { readonly visibilityState: DocumentVisibilityState };

export const watchNetwork: WatchNetwork =
  typeof window === "undefined" || typeof document === "undefined" ? () => () => {} : networkOf(window, document);

export function networkOf(window: EventTarget, page: Page): WatchNetwork {
  return (tell) => {
    const back = (): void => tell("back");
    const doubt = (): void => tell("doubtful");
    const seen = (): void => {
      if (page.visibilityState === "visible") doubt();
    };
    const heard = [
      [window, "online", back],
      [window, "offline", doubt],
      [window, "pageshow", doubt], // From the cache of pages, where it slept.
      [page, "resume", doubt],
      [page, "visibilitychange", seen],
    ] as const;
    for (const [target, event, hear] of heard) target.addEventListener(event, hear);
    return () => {
      for (const [target, event, hear] of heard) target.removeEventListener(event, hear);
    };
  };
}
