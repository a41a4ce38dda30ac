import { expect, test } from "vitest";

import { FakeClock } from "../testing/fake-clock.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { limitedLog } from "./limited-log.ts";

test("[LML1] a sentence is written ten times a second, and the next line tells how many lines were left out", async () => {
  const clock = new FakeClock();
  const lines: string[] = [];
  const write = (facts: object, sentence: string) => void lines.push(`${sentence} ${JSON.stringify(facts)}`);
  const log = limitedLog({ ...SILENT_LOG, info: write, warn: write, error: write }, clock);
  for (let room = 0; room < 1_000; room++) log.info({ room }, "asked");
  log.warn({}, "another sentence");
  log.error({}, "asked");
  expect(lines).toHaveLength(12);
  await clock.advance(1_000);
  log.info({ room: 1_000 }, "asked");
  log.info({ room: 1_001 }, "asked");
  expect(lines.slice(12)).toEqual(['asked {"room":1000,"leftOut":990}', 'asked {"room":1001}']);
});
