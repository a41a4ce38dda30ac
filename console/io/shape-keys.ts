/** What keys and a double click do to a shape: whatever a mouse does, a keyboard does too. */

import type { Point } from "@coroom/client";

export type ShapeKeys = {
  moveBy(id: string, by: Point): void;
  remove(id: string): void;
  write(id: string): void;
  /** It has the focus, and not because a mouse pressed it. */
  reached(id: string): void;
};

const STEP = 10;
const ARROWS: Readonly<Record<string, Point>> = { ArrowLeft: { x: -STEP, y: 0 }, ArrowRight: { x: STEP, y: 0 }, ArrowUp: { x: 0, y: -STEP }, ArrowDown: { x: 0, y: STEP } };

export function watchShapeKeys(stage: HTMLElement, { moveBy, remove, write, reached }: ShapeKeys): void {
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
      if (key === "Escape") target.blur();
      return;
    }
    const id = shapeAt(target);
    if (id !== undefined && act(key, id)) event.preventDefault();
  });
  stage.addEventListener("focusin", ({ target }) => {
    const id = shapeAt(target);
    if (id !== undefined && target instanceof Element && target.matches(":focus-visible")) reached(id);
  });
  stage.addEventListener("dblclick", ({ target }) => {
    const id = shapeAt(target);
    if (id !== undefined && !isWritten(target)) write(id); // On what is being written it selects a word.
  });
}

function isWritten(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.isContentEditable;
}

function shapeAt(target: EventTarget | null): string | undefined {
  return target instanceof Element ? target.closest<HTMLElement>(".shape")?.dataset["id"] : undefined;
}
