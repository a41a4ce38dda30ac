import { expect, test } from "vitest";

import type { Epoch, UnixMillis } from "../../shared/ids.ts";
import { datedEpochs } from "./dated-epochs.ts";

const DATE = Date.UTC(2026, 10, 22);

function epochsAt(date: number, unit = 0) {
  return datedEpochs({ wallNow: () => date as UnixMillis }, () => unit);
}

test("[EPO1] a later epoch has a higher number, whether the log contains the previous one or not", () => {
  const first = epochsAt(DATE, 0.999).after(0 as Epoch);
  expect(epochsAt(DATE + 100).after(0 as Epoch)).toBeGreaterThan(first);
  expect(epochsAt(DATE).after(first)).toBeGreaterThan(first);
});

test("[EPO2] after the date was set back, epochs continue above the known one, at random distances", () => {
  const known = epochsAt(DATE).after(0 as Epoch);
  const [one, other] = [epochsAt(DATE - 3_600_000, 0.2).after(known), epochsAt(DATE - 3_600_000, 0.7).after(known)];
  expect(Math.min(one, other)).toBeGreaterThan(known);
  expect(one).not.toBe(other);
});

test("[EPO3] a server whose date is set back returns no epoch below its earlier ones", () => {
  let date = DATE;
  const epochs = datedEpochs({ wallNow: () => date as UnixMillis }, () => 0.5);
  const before = epochs.after(0 as Epoch);
  date -= 3_600_000;
  expect(epochs.after(0 as Epoch)).toBe(before + 1);
});

test("[EPO4] epochs are safe integers for centuries", () => {
  expect(Number.isSafeInteger(epochsAt(Date.UTC(2800, 0)).after(0 as Epoch))).toBe(true);
});

test("[EPO5] an epoch is a thousand per tenth of a second since 2020, so that all releases continue one numbering", () => {
  const date = Date.UTC(2020, 0) + 1_099;
  expect([0, 0.9999].map((unit) => epochsAt(date, unit).after(0 as Epoch))).toEqual([10_001, 11_000]);
});
