import { expect, test } from "vitest";

import type { Millis } from "../ids.ts";
import { ForeignOrigins } from "./foreign-origins.ts";

test("[FOR1] the log names a refused origin and the setting at most once a minute, and counts the others", () => {
  const lines: unknown[] = [];
  const log = { warn: (facts: object, sentence: string) => void lines.push([facts, sentence]) };
  const origins = new ForeignOrigins(log);
  const at = (seconds: number, origin: string): void => origins.receive(origin, (seconds * 1_000) as Millis);
  for (const second of [0, 1, 59]) at(second, `https://${second}.example`);
  at(60, "https://app.example");
  at(200, "x".repeat(16_384));
  const sentence = "a page of an origin that is not allowed was turned away: if it is yours, add the origin to COROOM_ALLOWED_ORIGINS";
  expect(lines).toEqual([
    [{ origin: "https://0.example", times: 1 }, sentence],
    [{ origin: "https://app.example", times: 3 }, sentence],
    [{ origin: "x".repeat(300), times: 1 }, sentence],
  ]);
});
