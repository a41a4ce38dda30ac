import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, expect, test } from "vitest";

import { GrowingLog, sizeOf } from "./growing-log.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-log-"));
  file = join(folder, "log");
});
afterEach(() => rmSync(folder, { recursive: true }));

test("[GLO1] matching lines are returned once they are complete, even if a read ends within a character", () => {
  const log = new GrowingLog(file, (line) => line.includes("ready"));
  expect(log.lines()).toEqual([]);
  const line = Buffer.from("é ready\nother\n");
  writeFileSync(file, line.subarray(0, 1));
  expect(log.lines()).toEqual([]);
  appendFileSync(file, line.subarray(1));
  appendFileSync(file, "two rea");
  expect(log.lines()).toEqual(["é ready"]);
  appendFileSync(file, "dy\n");
  expect(log.lines()).toEqual(["é ready", "two ready"]);
});

test("[GLO2] no byte is read twice, and no byte before the start position", () => {
  writeFileSync(file, "ready 1\n");
  const [all, later] = [new GrowingLog(file, () => true), new GrowingLog(file, () => true, sizeOf(file))];
  expect(all.lines()).toEqual(["ready 1"]);
  writeFileSync(file, "another\nready 2\n");
  expect([all.lines(), later.lines()]).toEqual([["ready 1", "ready 2"], ["ready 2"]]);
});

test("[GLO3] lines longer than one read are returned completely", () => {
  const long = "x".repeat(200_000);
  writeFileSync(file, `${long}\n${long}y\n`);
  expect(new GrowingLog(file, () => true).lines()).toEqual([long, `${long}y`]);
});
