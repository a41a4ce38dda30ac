/**
 * Turns mouse, touch and wheel input on the canvas into drags, pans, zooms and pointer positions, in pixels from its
 * corner.
 */

import type { Point } from "@coroom/client";

type PointerActions = {
  pointed(at: Point | undefined): void;
  pannedBy(pixels: Point): void;
  zoomedBy(factor: number, at: Point): void;
  /** `shape`: the shape id. `pixels`: distance since the last call. */
  draggedBy(shape: string, pixels: Point): void;
  dropped(shape: string): void;
};

const WHEEL_ZOOM = 0.0022;
const LINE_PIXELS = 16;
/** A shorter movement is not a drag. */
const DRAG_PIXELS_MIN = 3;

type Touch = { at: Point; readonly from: Point; readonly shape: string | undefined; moved: boolean };

export function watchPointers(stage: HTMLElement, actions: PointerActions): void {
  const touches = new Map<number, Touch>();
  const placeOf = ({ clientX, clientY }: MouseEvent): Point => {
    const { left, top } = stage.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  };

  stage.addEventListener("pointerdown", (event) => {
    if (
      !(event.target instanceof Element) ||
      event.button > 1 ||
      event.target.closest("button, [contenteditable='plaintext-only']") !== null
    )
      return;
    const shape = event.target.closest<HTMLElement>(".shape")?.dataset["id"];
    const at = placeOf(event);
    touches.set(event.pointerId, { at, from: at, shape: event.button === 0 ? shape : undefined, moved: false });
    event.target.setPointerCapture(event.pointerId); // Capture on the target, not on the stage: clicks follow the capture and must reach the shape.
  });
  stage.addEventListener("pointermove", (event) => {
    const at = placeOf(event);
    actions.pointed(at);
    if (event.buttons === 0) touches.delete(event.pointerId); // The pointer was released elsewhere, because its element was removed.
    const touch = touches.get(event.pointerId);
    if (touch === undefined) return;
    touch.moved ||= Math.hypot(at.x - touch.from.x, at.y - touch.from.y) >= DRAG_PIXELS_MIN;
    if (!touch.moved) return;
    const by = { x: at.x - touch.at.x, y: at.y - touch.at.y };
    const [other] = [...touches.values()].filter((one) => one !== touch);
    if (other !== undefined) pinch(touch, other, at, actions);
    else if (touch.shape === undefined) actions.pannedBy(by);
    else actions.draggedBy(touch.shape, by);
    touch.at = at;
  });
  const lift = (event: PointerEvent): void => {
    const touch = touches.get(event.pointerId);
    touches.delete(event.pointerId);
    if (touch?.shape !== undefined && touch.moved) actions.dropped(touch.shape);
  };
  // Listen on the window: the dragged element may have been removed during the drag.
  window.addEventListener("pointerup", lift);
  window.addEventListener("pointercancel", lift);
  stage.addEventListener("pointerleave", () => actions.pointed(undefined));
  stage.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
      const [across, down] = [event.deltaX * pixels, event.deltaY * pixels];
      // A trackpad reports a pinch as a wheel event with ctrlKey. Its two-finger scroll has a horizontal part.
      if (event.ctrlKey || event.metaKey || (event.deltaX === 0 && !event.shiftKey))
        actions.zoomedBy(Math.exp(-down * WHEEL_ZOOM * (event.ctrlKey ? 4 : 1)), placeOf(event));
      else actions.pannedBy(event.shiftKey ? { x: -down, y: 0 } : { x: -across, y: -down });
    },
    { passive: false },
  );
}

function pinch(touch: Touch, other: Touch, at: Point, actions: PointerActions): void {
  const middle = { x: (at.x + other.at.x) / 2, y: (at.y + other.at.y) / 2 };
  const spread = (one: Point): number => Math.max(1, Math.hypot(one.x - other.at.x, one.y - other.at.y));
  actions.zoomedBy(spread(at) / spread(touch.at), middle);
  actions.pannedBy({ x: (at.x - touch.at.x) / 2, y: (at.y - touch.at.y) / 2 });
}
