import fc from "fast-check";
import { expect, test } from "vitest";

import { cameraAtFirst, cameraOn, cameraOver, cameraShowing, panned, toCanvas, viewportOf, zoomed } from "./camera.ts";

const SIZE = { width: 600, height: 400 };
const point = fc.record({ x: fc.integer({ min: -2000, max: 2000 }), y: fc.integer({ min: -2000, max: 2000 }) });
const camera = fc.record({
  x: fc.integer({ min: -5000, max: 5000 }),
  y: fc.integer({ min: -5000, max: 5000 }),
  zoom: fc.double({ min: 0.1, max: 4, noNaN: true }),
});

test("[CAN1] zooming keeps the point under the pointer in place", () => {
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

test("[CAN1] a dragged shape follows the pointer", () => {
  fc.assert(
    fc.property(camera, point, point, (before, from, by) => {
      const after = panned(before, by);
      expect(toCanvas(after, { x: from.x + by.x, y: from.y + by.y }).x).toBeCloseTo(toCanvas(before, from).x, 6);
    }),
  );
});

test("[CAN2] the viewport is the rectangle between the visible corners", () => {
  const { x, y, width, height } = viewportOf({ x: 10, y: 20, zoom: 2 }, SIZE);
  expect([
    { x, y },
    { x: x + width, y: y + height },
  ]).toEqual([toCanvas({ x: 10, y: 20, zoom: 2 }, { x: 0, y: 0 }), toCanvas({ x: 10, y: 20, zoom: 2 }, { x: 600, y: 400 })]);
});

test("[CAN2] the zoom-to-all camera shows every shape, or the middle of an empty canvas", () => {
  const things = [
    { x: -1000, y: 0, width: 100, height: 100 },
    { x: 900, y: 700, width: 200, height: 50 },
  ];
  const view = viewportOf(cameraOn(things, SIZE), SIZE);
  for (const { x, y, width, height } of things) {
    expect([x >= view.x, y >= view.y, x + width <= view.x + view.width, y + height <= view.y + view.height]).toEqual([
      true,
      true,
      true,
      true,
    ]);
  }
  expect(cameraOn([], SIZE)).toEqual(cameraOver(SIZE));
  expect(cameraOn([{ x: 0, y: 0, width: 10, height: 10 }], SIZE).zoom).toBe(1);
});

test("[CAN2] a canvas opens with all shapes in view, or on its middle when one shape is far away", () => {
  const [here, aside, far] = [0, 900, 1_000_000].map((x) => ({ x, y: 0, width: 100, height: 100 }));
  expect(cameraAtFirst([here!, aside!], SIZE)).toEqual(cameraOn([here!, aside!], SIZE));
  expect(cameraAtFirst([here!, far!], SIZE)).toEqual(cameraOver(SIZE));
});

test("[CAN6] showing a shape moves it into view, and moves nothing when it is already in view", () => {
  const thing = fc.record({
    x: fc.integer({ min: -5000, max: 5000 }),
    y: fc.integer({ min: -5000, max: 5000 }),
    width: fc.constant(70),
    height: fc.constant(50),
  });
  fc.assert(
    fc.property(camera, thing, (before, shown) => {
      const after = cameraShowing(before, shown, SIZE);
      const { x, y } = { x: (shown.x - after.x) * after.zoom, y: (shown.y - after.y) * after.zoom };
      expect([x >= 47.9, y >= 47.9, x + 70 * after.zoom <= 552.1, y + 50 * after.zoom <= 352.1, after.zoom]).toEqual([
        true,
        true,
        true,
        true,
        before.zoom,
      ]);
      const again = cameraShowing(after, shown, SIZE);
      expect(Math.hypot(again.x - after.x, again.y - after.y)).toBeLessThan(1e-6);
    }),
  );
  expect(cameraShowing({ x: 0, y: 0, zoom: 1 }, { x: 300, y: -100, width: 2000, height: 20 }, SIZE)).toEqual({ x: 252, y: -148, zoom: 1 });
});
