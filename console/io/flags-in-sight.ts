/** Keeps the names at other people's carets within the paper: a flag that would hang over its edge is drawn back from it. */

import type { Extension } from "@codemirror/state";
import { type EditorView, ViewPlugin } from "@codemirror/view";

type Shift = { readonly flag: HTMLElement; readonly leftPx: number };

/** The caret's own border, which the flag begins with. */
const BORDER_PX = -1;

export const flagsInSight: Extension = ViewPlugin.define((view) => {
  const measure = { key: flagsIn, read: shiftsIn, write: (shifts: readonly Shift[]) => shifts.forEach(move) };
  view.requestMeasure(measure);
  return { update: () => view.requestMeasure(measure) };
});

function shiftsIn(view: EditorView): Shift[] {
  const paper = view.scrollDOM.getBoundingClientRect();
  return flagsIn(view).map((flag) => {
    const caretLeft = flag.parentElement!.getBoundingClientRect().left;
    const overhang = caretLeft + BORDER_PX + flag.offsetWidth - paper.right;
    return { flag, leftPx: BORDER_PX - Math.ceil(Math.max(0, Math.min(overhang, caretLeft - paper.left))) };
  });
}

function move({ flag, leftPx }: Shift): void {
  if (flag.style.left === `${leftPx}px`) return;
  flag.style.left = `${leftPx}px`;
  flag.dataset["shifted"] = String(leftPx < BORDER_PX);
}

function flagsIn({ contentDOM }: EditorView): HTMLElement[] {
  return [...contentDOM.querySelectorAll<HTMLElement>(".cm-ySelectionInfo")];
}
