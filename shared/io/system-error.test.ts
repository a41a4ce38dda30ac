import { existsSync, writeFileSync } from "node:fs";

import { expect, test } from "vitest";

import { folderAdvice } from "./system-error.ts";

const errorOf = (write: () => void): unknown => {
  try {
    write();
  } catch (error) {
    return error;
  }
  throw new Error("it was written");
};

test("[ERR1] the advice for a folder that cannot be written names a full disk", () => {
  expect(folderAdvice(Object.assign(new Error("no space"), { code: "ENOSPC" }))).toBe("The disk is full: free space on it");
  expect(folderAdvice(errorOf(() => writeFileSync("/nowhere/file", "x")))).toBe("Make it writable for this user");
});

test.skipIf(!existsSync("/dev/full"))("[ERR1] the error of a real full device is recognised", () => {
  expect(folderAdvice(errorOf(() => writeFileSync("/dev/full", "x")))).toContain("disk is full");
});
