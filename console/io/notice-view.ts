/** Shows a notice under the bar. It is read out by screen readers where it stands, so it changes only when there is another thing to say. */

import type { Action, Notice } from "../notices.ts";
import { element } from "./element.ts";

/** What heals sooner is not worth a sentence. */
const SHOWN_AFTER_MS = 1000;

const LABELS: Record<Action, string> = { "copy-text": "Copy my text", "reload": "Load again" };

export function noticeView(act: (action: Action) => void): (notice: Notice | undefined) => void {
  const box = element("notice", HTMLElement);
  const [title, advice, button] = [box.querySelector("strong")!, box.querySelector("span")!, box.querySelector("button")!];
  let current: Notice | undefined;
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
  button.addEventListener("click", () => {
    if (current?.action !== undefined) act(current.action);
  });
  return (notice) => {
    const isSame = notice?.title === current?.title;
    current = notice;
    if (isSame && !box.hidden) show(); // What to do about it may be another thing by now.
    if (isSame) return;
    clearTimeout(showing);
    if (notice === undefined) box.hidden = true;
    else showing = setTimeout(show, SHOWN_AFTER_MS);
  };
}
