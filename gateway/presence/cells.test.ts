import fc from "fast-check";
import { expect, test } from "vitest";

import { cellAt, cellsOf, levelOf } from "./cells.ts";

const COORDINATE_MAX = 2 ** 48;
const coordinate = fc.oneof(
  fc.integer({ min: -5_000, max: 5_000 }),
  fc.maxSafeInteger().map((number) => Math.trunc(number / 2 ** 5)),
);
const length = fc.oneof(
  fc.nat({ max: 4_000 }),
  fc.double({ min: 0, max: 1, noNaN: true }).map((share) => Math.floor(share * COORDINATE_MAX)),
);
const view = fc.record({ x: coordinate, y: coordinate, width: length, height: length });
const share = fc.double({ min: 0, max: 1, noNaN: true });

test("[CELL1] every point of a view is in one of the view's cells, at the view's level", () => {
  fc.assert(
    fc.property(view, share, share, (view, across, down) => {
      const point = { x: Math.floor(view.x + across * view.width), y: Math.floor(view.y + down * view.height) };
      expect(cellsOf(view)).toContain(cellAt(levelOf(view), point));
    }),
  );
});

test("[CELL2] a view touches at most nine cells", () => {
  fc.assert(
    fc.property(view, (view) => {
      expect(cellsOf(view).length).toBeLessThanOrEqual(9);
    }),
  );
});

test("[CELL3] a cell is at least half as wide as the view that listens to it, and at most as wide", () => {
  const large = fc.record({ x: coordinate, y: coordinate, width: fc.integer({ min: 64, max: 100_000 }), height: fc.constant(64) });
  fc.assert(
    fc.property(large, (view) => {
      const side = 64 * 2 ** levelOf(view);
      expect(side).toBeGreaterThanOrEqual(view.width / 2);
      expect(side).toBeLessThanOrEqual(Math.max(64, view.width));
    }),
  );
});

test("[CELL4] cells exist on both sides of the origin", () => {
  expect(cellAt(0, { x: -1, y: 0 })).toBe("0/-1/0");
  expect(cellsOf({ x: -10, y: -10, width: 20, height: 20 })).toEqual(["0/-1/-1", "0/-1/0", "0/0/-1", "0/0/0"]);
  expect(levelOf({ x: 0, y: 0, width: 1920, height: 1080 })).toBe(4);
});
