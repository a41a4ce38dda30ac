import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";

import { readSettings } from "../../settings/settings.ts";
import { sharedSettings } from "../../settings/common-settings.ts";
import { SILENT_LOG } from "../../testing/silent-log.ts";
import { startTraces } from "./start-traces.ts";

test("[TRC16] with tracing off, the default, no tracing module is loaded and nothing is counted", async () => {
  const loaded = vi.fn();
  vi.doMock("./edit-traces.ts", () => (loaded(), {}));
  const registry = new Registry();
  for (const env of [{}, { COROOM_TRACES_URL: "http://collector:4318", COROOM_TRACES_SHARE: "0" }, { COROOM_TRACES_SHARE: "1" }]) {
    const config = readSettings(sharedSettings, { flags: {}, env });
    expect(await startTraces(config, { role: "gateway", instance: "g" }, { log: SILENT_LOG, registry })).toBeUndefined();
  }
  expect([loaded.mock.calls.length, registry.getMetricsAsArray()]).toEqual([0, []]);
  vi.doUnmock("./edit-traces.ts");
});
