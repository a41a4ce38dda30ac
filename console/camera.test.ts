import fc from "fast-check";
import { expect, test } from "vitest";

import { cameraOn, cameraOver, panned, toCanvas, viewportOf, zoomed } from "./camera.ts";

const SIZE = { width: 600, height: 400 };
const point = fc.record({ x: fc.integer({ min: -2000, max: 2000 }), y: fc.integer({ min: -2000, max: 2000 }) });
const camera = fc.record({ x: fc.integer({ min: -5000, max: 5000 }), y: fc.integer({ min: -5000, max: 5000 }), zoom: fc.double({ min: 0.1, max: 4, noNaN: true }) });

test("[CAN1] what lies under the pointer stays there while zooming, however far", () => {
  fc.assert(
    fc.property(camera, point, fc.double({ min: 0.01, max: 100, noNaN: true }), (before, pixel, factor) => {
      const after = zoomed(before, factor, pixel);
      expect(after.zoom).toBeGreaterThanOrEqual(0.1);
      expect(after.zoom).toBeLessThanOrEqual(4);
      expect(toCanvas(after, pixel).x).toBeCloseTo(toCanvas(before, pixel).x, 6);
      expect(toCanvas(after, pixel).y).toBeCloseTo(toCanvas(before, pixel).y, 6);
    }),
  );
});

test("[CAN1] what is dragged goes along with the pointer", () => {
  fc.assert(
    fc.property(camera, point, point, (before, from, by) => {
      const after = panned(before, by);
      expect(toCanvas(after, { x: from.x + by.x, y: from.y + by.y }).x).toBeCloseTo(toCanvas(before, from).x, 6);
    }),
  );
});

test("[CAN2] the viewport is what the corners show", () => {
  const { x, y, width, height } = viewportOf({ x: 10, y: 20, zoom: 2 }, SIZE);
  expect([{ x, y }, { x: x + width, y: y + height }]).toEqual([toCanvas({ x: 10, y: 20, zoom: 2 }, { x: 0, y: 0 }), toCanvas({ x: 10, y: 20, zoom: 2 }, { x: 600, y: 400 })]);
});

test("[CAN2] to see everything is to have it all in view; an empty canvas shows its middle", () => {
  const things = [{ x: -1000, y: 0, width: 100, height: 100 }, { x: 900, y: 700, width: 200, height: 50 }];
  const view = viewportOf(cameraOn(things, SIZE), SIZE);
  for (const { x, y, width, height } of things) {
    expect([x >= view.x, y >= view.y, x + width <= view.x + view.width, y + height <= view.y + view.height]).toEqual([true, true, true, true]);
  }
  expect(cameraOn([], SIZE)).toEqual(cameraOver(SIZE));
  expect(cameraOn([{ x: 0, y: 0, width: 10, height: 10 }], SIZE).zoom).toBe(1);
});
