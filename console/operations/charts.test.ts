import { expect, test } from "vitest";

import { isAdded, VITAL_SOURCES } from "../../shared/bus/vitals.ts";
import { addValues, askAfter, chartData, CHARTS, chartsRemark, chartText, NO_VALUES, ROOM_CHART, type ValuesOverTime } from "./charts.ts";
import { bytes, duration } from "./format.ts";
import { consoleAddress, parseConsoleAddress, START_PAGE } from "./console-address.ts";

const EVERY_MS = 5_000;
const answer = (from: number, lines: Record<string, (number | null)[]>) => ({
  everyMs: EVERY_MS,
  from,
  lines: new Map(Object.entries(lines)),
});
const shown = ({ from, lines }: ValuesOverTime) => ({ from, ...Object.fromEntries(lines) });

test("[CHT1] each line of a chart is a vital that its role publishes, and each vital is in a chart", () => {
  const published = Object.entries(VITAL_SOURCES).flatMap(([role, sources]) =>
    [...Object.keys(sources), "memoryBytes"].map((vital) => `${role} ${vital}`),
  );
  expect(CHARTS.flatMap(({ lines }) => lines.map(({ key }) => key)).sort()).toEqual(published.sort());
  expect([isAdded("connections"), isAdded("natsLag")]).toEqual([true, false]);
});

test("[CHT2] an answer continues the known values, and replaces those that it repeats", () => {
  const first = addValues(NO_VALUES, answer(100, { a: [1, 2, 3, null] }));
  expect(askAfter(first)).toBe(101);
  const second = addValues(first, answer(102, { a: [3, 4, 5], b: [7, 8, 9] }));
  expect(shown(second)).toEqual({ from: 100, a: [1, 2, 3, 4, 5], b: [null, null, 7, 8, 9] });
  expect(shown(addValues(second, answer(105, { b: [1] })))).toEqual({ from: 100, a: [1, 2, 3, 4, 5, null], b: [null, null, 7, 8, 9, 1] });
  expect(addValues(second, answer(105, {}))).toBe(second);
});

test("[CHT3] an answer of a gateway with another history replaces the values, and an hour is kept", () => {
  const known = addValues(NO_VALUES, answer(100, { a: [1, 2] }));
  expect(shown(addValues(known, answer(400, { a: [9] })))).toEqual({ from: 400, a: [9] });
  expect(shown(addValues(known, answer(50, { a: [9] })))).toEqual({ from: 50, a: [9] });
  const hour = addValues(known, answer(102, { a: Array.from({ length: 720 }, (_, index) => index) }));
  expect([hour.from, hour.length, hour.lines.get("a")?.[0]]).toEqual([102, 720, 0]);
});

test("[CHT4] a chart covers the chosen minutes, also before the first value, and without any value there is none", () => {
  const values = addValues(NO_VALUES, answer(1_000, { participants: [3, 4], editsPerSecond: [null, null] }));
  const data = chartData(ROOM_CHART, values, 1)!;
  expect(data.lines.map(({ label }) => label)).toEqual(["participants"]);
  expect([data.times.length, data.times.at(-1), data.values[0]!.slice(-3)]).toEqual([12, 5_005, [null, 3, 4]]);
  expect(
    chartData(ROOM_CHART, addValues(values, answer(1_002, { participants: Array.from({ length: 20 }, () => 1) })), 1)!.values[0],
  ).toHaveLength(12);
  expect(chartData(ROOM_CHART, NO_VALUES, 5)).toBeUndefined();
});

test("[CHT8] the text of a chart names the range of each line within the chosen minutes", () => {
  const values = addValues(
    NO_VALUES,
    answer(1_000, { participants: [90, ...Array.from({ length: 11 }, () => null), 3, 4], editsPerSecond: [0.5] }),
  );
  expect(chartText(ROOM_CHART, chartData(ROOM_CHART, values, 1)!)).toBe("Size and edits: participants from 3 to 4, edits/s without values");
});

test("[CHT5] durations and bytes have a unit that fits", () => {
  expect([0.0004, 0.012, 1.54, 240].map(duration)).toEqual(["0.4 ms", "12 ms", "1.5 s", "4 min"]);
  expect([0, 812, 81_200, 1_440_000, 23e9].map(bytes)).toEqual(["0 B", "812 B", "81 KB", "1.4 MB", "23 GB"]);
});

test("[CHT6] an address is read as it was written, and unknown parts are ignored", () => {
  const address = {
    tab: "charts",
    minutes: 60,
    process: "rs-1",
    room: { tenant: "acme", room: "a & b" },
    events: "mode",
    find: "ö #",
  } as const;
  expect(parseConsoleAddress(consoleAddress(address))).toEqual(address);
  expect(consoleAddress(START_PAGE)).toBe("");
  expect(parseConsoleAddress("#tab=unknown&minutes=7&events=x&room=alone&later=1")).toEqual(START_PAGE);
});

test("[CHT7] the charts of a process that stopped state since when it sends no values", () => {
  const values = (...of: (number | null)[]) =>
    addValues(NO_VALUES, answer(1_000, { "gateway rooms": of, "gateway edits": of.map(() => null) }));
  const nulls = (count: number) => Array.from({ length: count }, () => null);
  expect(chartsRemark(NO_VALUES, "")).toContain("No values yet");
  expect(chartsRemark(NO_VALUES, "rs-1")).toContain("no values for an hour");
  expect(chartsRemark(values(...nulls(9)), "rs-1")).toContain("no values for an hour");
  expect(chartsRemark(values(1, 2, ...nulls(5)), "rs-1")).toBe("");
  expect(chartsRemark(values(1, 2, ...nulls(6)), "rs-1")).toMatch(/stopped, or does not reach NATS: its last values are of \d.*\.$/);
  expect(chartsRemark(values(1, 2, ...nulls(6)), "")).toBe("");
});
