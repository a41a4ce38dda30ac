/** Reports whether the page is visible. Other platforms than browsers count as visible. */

import type { WatchVisibility } from "../ports.ts";

type Page = EventTarget & { readonly visibilityState: DocumentVisibilityState };

export const watchVisibility: WatchVisibility = typeof document === "undefined" ? () => () => {} : visibilityOf(document);

export function visibilityOf(page: Page): WatchVisibility {
  return (report) => {
    const look = (): void => report(page.visibilityState !== "hidden");
    page.addEventListener("visibilitychange", look);
    look();
    return () => page.removeEventListener("visibilitychange", look);
  };
}
