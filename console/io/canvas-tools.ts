/** The canvas's buttons. */

import { SHAPE_KINDS, type ShapeKind } from "../shapes.ts";
import { element } from "./element.ts";

export type Tools = { add(kind: ShapeKind): void; remove(): void; zoom(factor: number): void; seeAll(): void };

const ZOOM_STEP = 1.25;

/** `removable`: whether a shape is chosen that may be removed. */
export function watchTools(tools: Tools): { setWritable(writable: boolean): void; setRemovable(removable: boolean): void } {
  const adders = SHAPE_KINDS.map((kind) => {
    const button = element(`add-${kind}`, HTMLButtonElement);
    button.addEventListener("click", () => tools.add(kind));
    return button;
  });
  const remover = element("remove-shape", HTMLButtonElement);
  remover.addEventListener("mousedown", (event) => event.preventDefault()); // The chosen shape keeps the focus: not every browser gives it to buttons.
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
