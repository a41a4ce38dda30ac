/** The canvas's buttons. */

import { SHAPE_KINDS, type ShapeKind } from "../shapes.ts";
import { element } from "./element.ts";

export type Tools = { add(kind: ShapeKind): void; zoom(factor: number): void; seeAll(): void };

const ZOOM_STEP = 1.25;

export function watchTools(tools: Tools): { setWritable(writable: boolean): void } {
  const adders = SHAPE_KINDS.map((kind) => {
    const button = element(`add-${kind}`, HTMLButtonElement);
    button.addEventListener("click", () => tools.add(kind));
    return button;
  });
  element("zoom-in", HTMLButtonElement).addEventListener("click", () => tools.zoom(ZOOM_STEP));
  element("zoom-out", HTMLButtonElement).addEventListener("click", () => tools.zoom(1 / ZOOM_STEP));
  element("zoom-all", HTMLButtonElement).addEventListener("click", () => tools.seeAll());
  return {
    setWritable: (writable) => {
      for (const adder of adders) adder.disabled = !writable;
    },
  };
}
