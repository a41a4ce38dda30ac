import { expect, test } from "vitest";

import { Turns } from "./turns.ts";

test("[TUR1] what is received while another is taken waits until that one is done", () => {
  const seen: string[] = [];
  const turns = new Turns<string>((input) => {
    seen.push(`${input} begins`);
    if (input === "a") turns.receive("b");
    seen.push(`${input} ends`);
  });
  turns.receive("a");
  expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("[TUR2] one that fails does not stop the next", () => {
  const seen: string[] = [];
  const turns = new Turns<string>((input) => {
    if (input === "bad") throw new Error("bad");
    seen.push(input);
  });
  expect(() => turns.receive("bad")).toThrow("bad");
  turns.receive("good");
  expect(seen).toEqual(["good"]);
});
