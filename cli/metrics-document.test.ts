import { expect, test } from "vitest";

import { allMetrics } from "../deploy/all-metrics.ts";
import { metricsDocument } from "./metrics-document.ts";

test("[CMD6] docs/METRICS.md lists every declared metric (npm run metrics-doc updates it)", async () => {
  await expect(metricsDocument(await allMetrics())).toMatchFileSnapshot("../docs/METRICS.md");
});
