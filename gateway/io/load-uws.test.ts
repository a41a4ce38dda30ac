import { expect, test } from "vitest";

import { loadUws } from "./load-uws.ts";

const tooOldLibc = (): never => {
  throw new Error("version `GLIBC_2.38' not found");
};

test("[LUW1] where neither runs it is said under what, and what would", () => {
  expect(() => loadUws(tooOldLibc, "24.1.0")).toThrow(
    /under Node 24\.1\.0 on \w+ \w+ with (glibc [\d.]+|no glibc): use Node 20 or 22, or on Linux with glibc 2\.38/,
  );
});

test("[LUW2] the newer is tried first, and not at all under Node 20", () => {
  const triedUnder = (version: string): string[] => {
    const tried: string[] = [];
    expect(() => loadUws((name) => (tried.push(name), tooOldLibc()), version)).toThrow(AggregateError);
    return tried;
  };
  expect(triedUnder("22.12.0")).toEqual(["uws-node22", "uws-node20"]);
  expect(triedUnder("20.19.0")).toEqual(["uws-node20"]);
});
