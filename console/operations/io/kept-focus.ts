/**
 * Keeps the focus when the element that has it is removed, hidden or disabled. Otherwise the browser gives the focus to
 * the page: Enter does nothing, and a screen reader starts again at the top. After [Lift Ada, Lift Grace] without Ada the
 * focus is on Lift Grace.
 */

const FOCUSABLE = "a[href], button, input, select, [tabindex='0']";

/**
 * Call before a change of the page, and call the returned function after the change. A lost focus goes to the next
 * element of the same section or dialog, otherwise to the previous one, otherwise to the heading.
 */
export function keepFocus(): () => void {
  const focused = document.activeElement;
  const region = focused?.closest("section, dialog, main");
  if (!(focused instanceof HTMLElement) || region === null || region === undefined) return () => {};
  const all = [...region.querySelectorAll<HTMLElement>(FOCUSABLE)];
  const at = all.indexOf(focused);
  return () => {
    if (isFocusable(document.activeElement)) return;
    const next = [focused, ...all.slice(at + 1), ...all.slice(0, Math.max(at, 0)).reverse()].find(isFocusable);
    if (next === undefined) focusHeading(region);
    else next.focus({ preventScroll: next === focused }); // A row that is only moved must not scroll the page.
  };
}

/** Opens a dialog. When it closes, the browser returns the focus to its opener, if the opener is still there. */
export function openDialog(dialog: HTMLDialogElement): void {
  const restoreFocus = keepFocus();
  dialog.addEventListener("close", restoreFocus, { once: true });
  dialog.showModal();
}

/** A removed element is invisible too. The browser notices a hidden element only when it draws the page. */
function isFocusable(candidate: Element | null): boolean {
  return candidate !== null && candidate !== document.body && candidate.checkVisibility() && !candidate.matches(":disabled");
}

function focusHeading(region: Element): void {
  const heading = region.querySelector<HTMLElement>("h2");
  if (heading === null) return;
  heading.tabIndex = -1;
  heading.focus();
}
