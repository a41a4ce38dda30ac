/** Keyboard, double-click and button input on the canvas. Every action of the mouse is also possible with the keyboard. */

import type { Point } from "@coroom/client";
import { SHAPE_KINDS, type ShapeKind } from "../shapes.ts";
import { element } from "./element.ts";

type ShapeKeys = {
  moveBy(id: string, by: Point): void;
  remove(id: string): void;
  write(id: string): void;
  undo(): void;
  redo(): void;
  /** Called with the shape that has the focus, or had it before a tool was used. Undefined: no shape. */
  chosen(id: string | undefined): void;
  /** Called when a shape gets the focus by keyboard. */
  reached(id: string): void;
};

const STEP = 10;
const ARROWS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -STEP, y: 0 },
  ArrowRight: { x: STEP, y: 0 },
  ArrowUp: { x: 0, y: -STEP },
  ArrowDown: { x: 0, y: STEP },
};

/** `canvas`: contains the stage and the toolbars. */
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
    const { target, key, altKey, ctrlKey, metaKey } = event;
    if (isWritten(target)) {
      if (key === "Escape") target.closest<HTMLElement>(".shape")?.focus(); // The shape has the focus again: arrow keys move it, and Tab goes to the next shape.
      return;
    }
    const id = shapeAt(target);
    if (altKey || ctrlKey || metaKey) return; // Alt and an arrow key go to another page.
    if (id !== undefined && act(key, id)) event.preventDefault();
  });
  canvas.addEventListener("keydown", (event) => {
    const what = isWritten(event.target) ? undefined : undoKeyOf(event);
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
    if (id !== undefined && !isWritten(target)) write(id); // In a shape that is being edited, a double click selects a word.
  });
}

/** Recognises the undo and redo keys of text editors, including those of macOS. */
function undoKeyOf({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent): "undo" | "redo" | undefined {
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

/** The buttons of the canvas. */
type CanvasTools = { add(kind: ShapeKind): void; remove(): void; zoom(factor: number): void; seeAll(): void };

const ZOOM_STEP = 1.25;

/** `removable`: true while a shape that may be removed is selected. */
export function watchTools(tools: CanvasTools): { setWritable(writable: boolean): void; setRemovable(removable: boolean): void } {
  const adders = SHAPE_KINDS.map((kind) => {
    const button = element(`add-${kind}`, HTMLButtonElement);
    button.addEventListener("click", () => tools.add(kind));
    return button;
  });
  const remover = element("remove-shape", HTMLButtonElement);
  remover.addEventListener("mousedown", (event) => event.preventDefault()); // Keep the focus on the selected shape: some browsers do not move it to a button.
  remover.addEventListener("click", () => tools.remove());
  element("zoom-in", HTMLButtonElement).addEventListener("click", () => tools.zoom(ZOOM_STEP));
  element("zoom-out", HTMLButtonElement).addEventListener("click", () => tools.zoom(1 / ZOOM_STEP));
  element("zoom-all", HTMLButtonElement).addEventListener("click", () => tools.seeAll());
  return {
    setWritable: (writable) => {
      for (const adder of adders) adder.disabled = !writable;
    },
    setRemovable: (removable) => {
      remover.disabled = !removable;
    },
  };
}
