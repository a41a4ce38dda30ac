/** Which part of the endless canvas a person looks at, and how closely. */

import type { Point, Rectangle } from "@coroom/client";

/** x, y: what lies in the upper left corner. zoom: pixels a unit. */
export type Camera = Point & { readonly zoom: number };
export type Size = { readonly width: number; readonly height: number };

const ZOOM_MIN = 0.1;
const ZOOM_MAX = 4;
const MARGIN = 48;

/** The middle of the canvas in the middle of the view. */
export function cameraOver({ width, height }: Size): Camera {
  return { x: -width / 2, y: -height / 2, zoom: 1 };
}

export function toCanvas({ x, y, zoom }: Camera, pixel: Point): Point {
  return { x: x + pixel.x / zoom, y: y + pixel.y / zoom };
}

/** Moved by so many pixels, as if the canvas were drawn along. */
export function panned({ x, y, zoom }: Camera, pixels: Point): Camera {
  return { x: x - pixels.x / zoom, y: y - pixels.y / zoom, zoom };
}

/** What lies under the pixel stays there. */
export function zoomed(camera: Camera, factor: number, pixel: Point): Camera {
  const zoom = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, camera.zoom * factor));
  const under = toCanvas(camera, pixel);
  return { x: under.x - pixel.x / zoom, y: under.y - pixel.y / zoom, zoom };
}

export function viewportOf({ x, y, zoom }: Camera, { width, height }: Size): Rectangle {
  return { x, y, width: width / zoom, height: height / zoom };
}

/** Everything in view, no larger than it is. */
export function cameraOn(things: readonly Rectangle[], size: Size): Camera {
  if (things.length === 0) return cameraOver(size);
  const left = Math.min(...things.map(({ x }) => x));
  const top = Math.min(...things.map(({ y }) => y));
  const [width, height] = [
    Math.max(...things.map((thing) => thing.x + thing.width)) - left,
    Math.max(...things.map((thing) => thing.y + thing.height)) - top,
  ];
  const zoom = Math.max(ZOOM_MIN, Math.min(1, (size.width - 2 * MARGIN) / width, (size.height - 2 * MARGIN) / height));
  return { x: left + width / 2 - size.width / 2 / zoom, y: top + height / 2 - size.height / 2 / zoom, zoom };
}

/** Where a canvas opens: on everything, or on its middle where that lies too far apart to be seen at once. */
export function cameraAtFirst(things: readonly Rectangle[], size: Size): Camera {
  const camera = cameraOn(things, size);
  return camera.zoom > ZOOM_MIN ? camera : cameraOver(size);
}

/** Panned no further than it takes to have the thing in view; of one that is larger, its upper left corner. */
export function cameraShowing(camera: Camera, { x, y, width, height }: Rectangle, size: Size): Camera {
  const { zoom } = camera;
  return panned(camera, {
    x: pixelsInto((x - camera.x) * zoom, width * zoom, size.width),
    y: pixelsInto((y - camera.y) * zoom, height * zoom, size.height),
  });
}

function pixelsInto(start: number, length: number, room: number): number {
  const [toStart, toEnd] = [MARGIN - start, room - MARGIN - (start + length)];
  return toEnd < 0 ? Math.max(toEnd, toStart) : Math.max(0, toStart);
}
