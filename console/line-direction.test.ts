import { expect, test } from "vitest";

import { isRightToLeft } from "./line-direction.ts";

test("[PAGE43] the first letter of a line sets its direction, regardless of the characters before it", () => {
  for (const line of ["שלום, Ada", "مرحبا بالعالم", "## 12. שלום", "- [ ] \u200fمرحبا", "> ހެލޯ", "𞤀𞤣"])
    expect(isRightToLeft(line), line).toBe(true);
  for (const line of ["", "123 … ٣", "# Plan שלום", "Ada: مرحبا", "éa שלום"]) expect(isRightToLeft(line), line).toBe(false);
});
