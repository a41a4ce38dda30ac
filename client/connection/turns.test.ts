import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("[TUR1] an input that arrives while another is processed waits until that one is done", () => {
  const seen: string[] = [];
  const turns = new Turns<string>((input) => {
    seen.push(`${input} begins`);
    if (input === "a") turns.add("b");
    seen.push(`${input} ends`);
  });
  turns.add("a");
  expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("[TUR2] an input that throws does not stop the next", () => {
  const seen: string[] = [];
  const turns = new Turns<string>((input) => {
    if (input === "bad") throw new Error("bad");
    seen.push(input);
  });
  expect(() => turns.add("bad")).toThrow("bad");
  turns.add("good");
  expect(seen).toEqual(["good"]);
});
