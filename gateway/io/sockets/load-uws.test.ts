import { expect, test } from "vitest";

import { StartError } from "../../../shared/process/lifecycle.ts";
import { loadUws } from "./load-uws.ts";

const tooOldLibc = (): never => {
  throw new Error("version `GLIBC_2.38' not found");
};

test("[LUW1] when neither build runs, the error names the environment and the supported ones", () => {
  expect(() => loadUws(tooOldLibc, "24.1.0")).toThrow(
    /under Node 24\.1\.0 on \w+ \w+ with (glibc [\d.]+|no glibc): use Node 20 or 22, or on Linux with glibc 2\.38.*install them again$/,
  );
});

test("[LUW2] the newer build is tried first, and never under Node 20", () => {
  const triedUnder = (version: string): string[] => {
    const tried: string[] = [];
    expect(() => loadUws((name) => (tried.push(name), tooOldLibc()), version)).toThrow(StartError);
    return tried;
  };
  expect(triedUnder("22.12.0")).toEqual(["uWebSockets.js", "uWebSockets.js-glibc-2.36"]);
  expect(triedUnder("20.19.0")).toEqual(["uWebSockets.js-glibc-2.36"]);
});
