import { expect, test } from "vitest";

import { readSettings, SettingError } from "./settings.ts";
import { tracesSettings } from "./traces-settings.ts";

const read = (env: Record<string, string>) => readSettings(tracesSettings, { flags: {}, env });

test("[TRC3] no edit is traced by default; an endpoint in OpenTelemetry's form enables traces of a share of the edits", () => {
  expect(read({})).toEqual({ tracesUrl: "", tracesShare: 0.01 });
  for (const url of ["http://collector:4318", "https://ada:p%40ss@otlp.example/otlp/", "http://[::1]:4318/"]) {
    expect(read({ COROOM_TRACES_URL: url, COROOM_TRACES_SHARE: "1" })).toEqual({ tracesUrl: url, tracesShare: 1 });
  }
  expect(["0", "0.25", "1e-3"].map((share) => read({ COROOM_TRACES_SHARE: share }).tracesShare)).toEqual([0, 0.25, 0.001]);
});

test.each([
  { COROOM_TRACES_URL: "collector:4318" },
  { COROOM_TRACES_URL: "grpc://collector:4317" },
  { COROOM_TRACES_URL: "http://collector:4318/v1/traces" },
  { COROOM_TRACES_URL: "http://collector:4318?key=HUSH" },
  { COROOM_TRACES_URL: "http://ada:HUSH%zz@collector" },
  { COROOM_TRACES_SHARE: "1.01" },
  { COROOM_TRACES_SHARE: "-0.1" },
  { COROOM_TRACES_SHARE: "1%" },
])("[TRC4] an invalid endpoint is refused, and no password is shown: %j", (env) => {
  expect(() => read(env)).toThrow(SettingError);
  expect(() => read(env)).not.toThrow(/HUSH/);
});
