/**
 * What hands do on the canvas: drag the ground or a shape, turn the wheel, pinch, point. Told in pixels from the
 * canvas's corner; what they mean is for the canvas to say.
 */

import type { Point } from "@coroom/client";

export type Hands = {
  pointed(at: Point | undefined): void;
  pannedBy(pixels: Point): void;
  zoomedBy(factor: number, at: Point): void;
  /** `shape`: its id. Pixels since the last. */
  draggedBy(shape: string, pixels: Point): void;
  dropped(shape: string): void;
};

const WHEEL_ZOOM = 0.0022;
const LINE_PIXELS = 16;
/** A hand that shakes has not dragged. */
const DRAG_PIXELS_MIN = 3;

type Touch = { at: Point; readonly from: Point; readonly shape: string | undefined; moved: boolean };

export function watchHands(stage: HTMLElement, hands: Hands): void {
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
    event.target.setPointerCapture(event.pointerId); // Not the stage: clicks follow the capture, and are of the shape.
  });
  stage.addEventListener("pointermove", (event) => {
    const at = placeOf(event);
    hands.pointed(at);
    if (event.buttons === 0) touches.delete(event.pointerId); // Lifted elsewhere: what held it was removed meanwhile.
    const touch = touches.get(event.pointerId);
    if (touch === undefined) return;
    touch.moved ||= Math.hypot(at.x - touch.from.x, at.y - touch.from.y) >= DRAG_PIXELS_MIN;
    if (!touch.moved) return;
    const by = { x: at.x - touch.at.x, y: at.y - touch.at.y };
    const [other] = [...touches.values()].filter((one) => one !== touch);
    if (other !== undefined) pinch(touch, other, at, hands);
    else if (touch.shape === undefined) hands.pannedBy(by);
    else hands.draggedBy(touch.shape, by);
    touch.at = at;
  });
  const lift = (event: PointerEvent): void => {
    const touch = touches.get(event.pointerId);
    touches.delete(event.pointerId);
    if (touch?.shape !== undefined && touch.moved) hands.dropped(touch.shape);
  };
  // Of the window: what was held may have been removed under the finger.
  window.addEventListener("pointerup", lift);
  window.addEventListener("pointercancel", lift);
  stage.addEventListener("pointerleave", () => hands.pointed(undefined));
  stage.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
      const [across, down] = [event.deltaX * pixels, event.deltaY * pixels];
      // A trackpad's pinch comes as a wheel with ctrl; its two-finger scroll has a sideways part.
      if (event.ctrlKey || event.metaKey || (event.deltaX === 0 && !event.shiftKey))
        hands.zoomedBy(Math.exp(-down * WHEEL_ZOOM * (event.ctrlKey ? 4 : 1)), placeOf(event));
      else hands.pannedBy(event.shiftKey ? { x: -down, y: 0 } : { x: -across, y: -down });
    },
    { passive: false },
  );
}

function pinch(touch: Touch, other: Touch, at: Point, hands: Hands): void {
  const middle = { x: (at.x + other.at.x) / 2, y: (at.y + other.at.y) / 2 };
  const spread = (one: Point): number => Math.max(1, Math.hypot(one.x - other.at.x, one.y - other.at.y));
  hands.zoomedBy(spread(at) / spread(touch.at), middle);
  hands.pannedBy({ x: (at.x - touch.at.x) / 2, y: (at.y - touch.at.y) / 2 });
}
