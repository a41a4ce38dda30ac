import { expect, test } from "vitest";

import { allMetrics } from "../deploy/all-metrics.ts";
import { metricsDocument } from "./metrics-document.ts";

test("[CMD6] docs/METRICS.md has every metric as it is declared: npm run metrics-doc brings it up to date", async () => {
  await expect(metricsDocument(await allMetrics())).toMatchFileSnapshot("../docs/METRICS.md");
});
