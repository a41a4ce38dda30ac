/** Shows a notice under the bar. Screen readers read it out, so it changes only when the message changes. */

import type { NoticeAction, PageNotice } from "../notices.ts";
import { element } from "./element.ts";

/** A problem that ends sooner is not shown. */
const SHOWN_AFTER_MS = 1000;

const LABELS: Record<NoticeAction, string> = { "copy-text": "Copy my text", "reload": "Reload the page" };

/** The button shows the text that `act` returns for this time. */
const OUTCOME_MS = 2000;

/** `act` returns the outcome of an action, as a text for its button. */
export function noticeView(act: (action: NoticeAction) => Promise<string | undefined>): (notice: PageNotice | undefined) => void {
  const box = element("notice", HTMLElement);
  const [title, advice, button] = [box.querySelector("strong")!, box.querySelector("span")!, box.querySelector("button")!];
  let current: PageNotice | undefined;
  let showing: ReturnType<typeof setTimeout> | undefined;

  const show = (): void => {
    const notice = current;
    if (notice === undefined) return;
    box.dataset["tone"] = notice.tone;
    title.textContent = notice.title;
    advice.textContent = notice.advice;
    button.hidden = notice.action === undefined;
    if (notice.action !== undefined) button.textContent = LABELS[notice.action];
    box.hidden = false;
  };
  button.addEventListener("click", async () => {
    const action = current?.action;
    const outcome = action && (await act(action));
    if (outcome === undefined) return;
    button.textContent = outcome;
    setTimeout(show, OUTCOME_MS);
  });
  return (notice) => {
    if (notice === current) return; // Screen readers would read it again.
    const isSame = notice?.title === current?.title;
    current = notice;
    if (isSame && !box.hidden) show(); // The advice may have changed.
    if (isSame) return;
    clearTimeout(showing);
    if (notice === undefined) box.hidden = true;
    else showing = setTimeout(show, SHOWN_AFTER_MS);
  };
}
