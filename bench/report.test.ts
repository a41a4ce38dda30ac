import { expect, test } from "vitest";

import { medianFigures } from "./report.ts";

test("[BREP1] the median of each figure is over the rounds that contain it", () => {
  const rounds = [
    { coroom: { ms: 9, bytes: 1 }, bare: { ms: 4 } },
    { coroom: { ms: 100 }, bare: { ms: 2 } },
    { coroom: { ms: 7, bytes: 2 } },
  ];
  expect(medianFigures(rounds)).toEqual({ coroom: { ms: 9, bytes: 1.5 }, bare: { ms: 3 } });
});
