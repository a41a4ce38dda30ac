import { readdirSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { isSplitAway, type LogPartitions, parseLogPartitions, refusalOfPartitions, writeLogPartitions } from "./log-partitions.ts";

const STATED: readonly [string, LogPartitions][] = [
  ["3", { kind: "settled", count: 3 }],
  ["3 to 9", { kind: "copying", from: 3, to: 9 }],
  ["9 from 3", { kind: "moving", from: 3, to: 9 }],
];

test.each(STATED)("[LGP1] the number of partitions is read from the text %j as it was written", (text, stated) => {
  expect(parseLogPartitions(text)).toEqual(stated);
  expect(writeLogPartitions(stated)).toBe(text);
});

test.each(["", "0", "03", "-3", "3.5", "3 to", "to 9", "3 to 0", "3 into 9", "3 to 9 from 1", "9999999999", " 3"])(
  "[LGP2] the text %j is no number of partitions",
  (text) => {
    expect(parseLogPartitions(text)).toBeUndefined();
    expect(refusalOfPartitions(text, "prod_log_0", 3)).toMatch(/prod_log_0 states ".*" .*Start the release that wrote it/);
  },
);

test("[LGP3] a process is refused by another number, and the error names the value to set and the command that changes it", () => {
  expect(refusalOfPartitions("3", "prod_log_0", 3)).toBeUndefined();
  expect(refusalOfPartitions("3", "prod_log_0", 9)).toMatch(/has 3 partitions .*not 9\. Set COROOM_LOG_PARTITIONS=3 .*coroom split-log/);
});

test("[LGP4] during a split every process is refused, with the former number and with the new one", () => {
  for (const partitions of [3, 9]) {
    expect(refusalOfPartitions("3 to 9", "prod_log_0", partitions)).toMatch(/--log-partitions 9 to complete.*--log-partitions 3 to cancel/);
    expect(refusalOfPartitions("9 from 3", "prod_log_0", partitions)).toMatch(/--log-partitions 9 to complete the split, and start/);
  }
});

test("[LGP5] a release that reads only a number refuses a log during a split", () => {
  for (const text of ["3 to 9", "9 from 3"]) expect([3, 9]).not.toContain(Number(text));
});

test("[LGP6] a process must end once rooms move or the number has changed, and not while records are copied", () => {
  expect(isSplitAway({ kind: "moving", from: 3, to: 9 }, 3)).toBe(true);
  expect(isSplitAway({ kind: "settled", count: 9 }, 3)).toBe(true);
  expect(isSplitAway({ kind: "copying", from: 3, to: 9 }, 3)).toBe(false);
  expect(isSplitAway({ kind: "settled", count: 3 }, 3)).toBe(false);
  expect(isSplitAway(undefined, 3)).toBe(false);
});

test("[LGP7] placement reads no number of partitions, so one that starts before the log with a wrong number does no harm", () => {
  const files = readdirSync("placement", { recursive: true, encoding: "utf8" }).filter((file) => /(?<!\.test)\.ts$/.test(file));
  expect(files).toContain("decide.ts");
  for (const file of files) expect(readFileSync(`placement/${file}`, "utf8"), file).not.toMatch(/partition|logStream/i);
});
