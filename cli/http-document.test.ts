import { expect, test } from "vitest";

import { httpDocument } from "./http-document.ts";
import { allParts } from "./openapi.ts";

test("[CMD7] docs/HTTP.md describes every HTTP operation (npm run http-doc updates it)", async () => {
  await expect(httpDocument(allParts())).toMatchFileSnapshot("../docs/HTTP.md");
});
