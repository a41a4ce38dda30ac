import { expect, test } from "vitest";

import { almostRight } from "../wire/mutate.ts";
import { CodeCoverage } from "./coverage.ts";
import { allInputs, loadTarget, TARGET_NAMES } from "./fuzz-target.ts";
import { Fuzzer } from "./fuzzer.ts";

const SEED = 20261125;
/** Inputs per target, by the cost of an input. `npm run fuzz` runs any number. */
const MUTATIONS: Readonly<Record<(typeof TARGET_NAMES)[number], number>> = {
  "bus-messages": 4_000,
  "http-requests": 2_000,
  "wire-frames": 20_000,
  "y-websocket": 1_000,
  "yjs-updates": 700,
};

test.each(TARGET_NAMES)("[FUZ1] every input of the corpus keeps the guarantees: %s", async (name) => {
  const target = await loadTarget(name);
  const inputs = allInputs(name, target);
  const accepted = inputs.filter((input) => target.fuzz(input));
  expect(accepted.length).toBeGreaterThan(inputs.length / 10); // Otherwise the inputs are so wrong that they show nothing.
});

test.each(TARGET_NAMES)("[FUZ2] almost valid inputs keep the guarantees: %s", async (name) => {
  const target = await loadTarget(name);
  let accepted = 0;
  for (const input of almostRight(SEED, allInputs(name, target), MUTATIONS[name])) if (target.fuzz(input)) accepted += 1;
  expect(accepted).toBeGreaterThan(MUTATIONS[name] / 100);
});

/** The input must take these steps one after the other. A random input of four bytes takes all with a probability of 1 in 65,536. */
const STAIRS = {
  seeds: () => [Uint8Array.of(0)],
  fuzz: (input: Uint8Array): boolean => {
    if (low(input[0]) !== 1) return false;
    if (low(input[1]) !== 2) return false;
    if (low(input[2]) !== 3) return false;
    if (low(input[3]) !== 4) return false;
    throw new Error("at the top");
  },
};
const low = (byte = 0): number => byte & 0x0f;

test("[FUZ3] coverage leads the fuzzer to code that blind mutations do not reach, and a finding is shrunk", () => {
  const RUNS_MAX = 20_000;
  const coverage = new CodeCoverage(/fuzz\.test\.ts/);
  const fuzzer = new Fuzzer(STAIRS, coverage, { seed: SEED, bytesMax: 64, onInput: () => {} });
  let finding = fuzzer.begin(STAIRS.seeds());
  while (finding === undefined && fuzzer.runs < RUNS_MAX) finding = fuzzer.step();
  coverage.stop();
  expect(finding?.error).toEqual(new Error("at the top"));
  expect(fuzzer.shrink(finding!).input.byteLength).toBe(4);
  for (const input of almostRight(SEED, STAIRS.seeds(), fuzzer.runs)) STAIRS.fuzz(input);
});
