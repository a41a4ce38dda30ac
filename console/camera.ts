/** Calculates the visible part and the zoom of the canvas. */

import type { Point, Rectangle } from "@coroom/client";

/** `x`, `y`: canvas position of the upper left corner. `zoom`: pixels per canvas unit. */
export type Camera = Point & { readonly zoom: number };
export type ViewSize = { readonly width: number; readonly height: number };

const ZOOM_MIN = 0.1;
const ZOOM_MAX = 4;
const MARGIN = 48;

/** Puts the middle of the canvas into the middle of the view. */
export function cameraOver({ width, height }: ViewSize): Camera {
  return { x: -width / 2, y: -height / 2, zoom: 1 };
}

export function toCanvas({ x, y, zoom }: Camera, pixel: Point): Point {
  return { x: x + pixel.x / zoom, y: y + pixel.y / zoom };
}

/** Moves the canvas by the given number of pixels. */
export function panned({ x, y, zoom }: Camera, pixels: Point): Camera {
  return { x: x - pixels.x / zoom, y: y - pixels.y / zoom, zoom };
}

/** Zooms, and keeps the point under `pixel` in place. */
export function zoomed(camera: Camera, factor: number, pixel: Point): Camera {
  const zoom = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, camera.zoom * factor));
  const under = toCanvas(camera, pixel);
  return { x: under.x - pixel.x / zoom, y: under.y - pixel.y / zoom, zoom };
}

export function viewportOf({ x, y, zoom }: Camera, { width, height }: ViewSize): Rectangle {
  return { x, y, width: width / zoom, height: height / zoom };
}

/** Shows all things, at 100% at most. */
export function cameraOn(things: readonly Rectangle[], size: ViewSize): Camera {
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

/** The first camera of a canvas: shows all shapes, or the middle of the canvas when they are too far apart. */
export function cameraAtFirst(things: readonly Rectangle[], size: ViewSize): Camera {
  const camera = cameraOn(things, size);
  return camera.zoom > ZOOM_MIN ? camera : cameraOver(size);
}

/** Pans as little as needed to bring the thing into view. A thing larger than the view shows its upper left corner. */
export function cameraShowing(camera: Camera, { x, y, width, height }: Rectangle, size: ViewSize): Camera {
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
