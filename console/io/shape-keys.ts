/** What keys and a double click do on the canvas: whatever a mouse does, a keyboard does too. */

import type { Point } from "@coroom/client";

export type ShapeKeys = {
  moveBy(id: string, by: Point): void;
  remove(id: string): void;
  write(id: string): void;
  undo(): void;
  redo(): void;
  /** It has the focus, or had it before a tool; undefined: none has. */
  chosen(id: string | undefined): void;
  /** It has the focus, and not because a mouse pressed it. */
  reached(id: string): void;
};

const STEP = 10;
const ARROWS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -STEP, y: 0 },
  ArrowRight: { x: STEP, y: 0 },
  ArrowUp: { x: 0, y: -STEP },
  ArrowDown: { x: 0, y: STEP },
};

/** `canvas`: the stage and the tools around it. */
export function watchShapeKeys(
  canvas: HTMLElement,
  stage: HTMLElement,
  { moveBy, remove, write, undo, redo, chosen, reached }: ShapeKeys,
): void {
  const act = (key: string, id: string): boolean => {
    const step = ARROWS[key];
    if (step !== undefined) moveBy(id, step);
    else if (key === "Delete" || key === "Backspace") remove(id);
    else if (key === "Enter") write(id);
    else return false;
    return true;
  };
  stage.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (isWritten(target)) {
      if (key === "Escape") target.closest<HTMLElement>(".shape")?.focus(); // From there keys move it, or go on to the next.
      return;
    }
    const id = shapeAt(target);
    if (id !== undefined && act(key, id)) event.preventDefault();
  });
  canvas.addEventListener("keydown", (event) => {
    const what = isWritten(event.target) ? undefined : pastKeyOf(event);
    if (what === undefined) return;
    event.preventDefault();
    if (what === "undo") undo();
    else redo();
  });
  stage.addEventListener("focusin", ({ target }) => {
    const id = shapeAt(target);
    chosen(id);
    if (id !== undefined && target instanceof Element && target.matches(":focus-visible")) reached(id);
  });
  canvas.addEventListener("focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && canvas.contains(relatedTarget))) chosen(undefined);
  });
  stage.addEventListener("dblclick", ({ target }) => {
    const id = shapeAt(target);
    if (id !== undefined && !isWritten(target)) write(id); // On what is being written it selects a word.
  });
}

/** As in a text: of Macs too. */
function pastKeyOf({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent): "undo" | "redo" | undefined {
  if (altKey || ctrlKey === metaKey) return undefined;
  if (key.toLowerCase() === "z") return shiftKey ? "redo" : "undo";
  return key.toLowerCase() === "y" && ctrlKey ? "redo" : undefined;
}

function isWritten(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.isContentEditable;
}

function shapeAt(target: EventTarget | null): string | undefined {
  return target instanceof Element ? target.closest<HTMLElement>(".shape")?.dataset["id"] : undefined;
}
