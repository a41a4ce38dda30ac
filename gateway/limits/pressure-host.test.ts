import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { Pressure } from "../ports.ts";
import { OutboundHealth, LoadShedder } from "./pressure.ts";
import { watchPressure } from "./pressure-host.ts";
import { RefusedConnections } from "./refused-connections.ts";

const CALM: Pressure = { delayMs: 0, outboundBytes: 0, natsLagMs: 0 };

test("[SHED6] a change of the shed level is reported to operations as refused connections are, sent to the rooms, and shown by the metrics", async () => {
  const pressures = [CALM, { ...CALM, delayMs: 300 }, CALM, CALM];
  const timers: (() => void)[] = [];
  const [reports, levels]: [OperationsReport[], number[]] = [[], []];
  const registry = new Registry();
  let now = 0;
  const clock = {
    now: () => now as Millis,
    wallNow: () => now as UnixMillis,
    after: (_: number, run: () => void) => (timers.push(run), () => timers.splice(0)),
  };
  const outbound = new OutboundHealth({ outboundP99MsMax: 500 });
  const shed = new LoadShedder({
    shedDelayMsMin: 100,
    shedOutboundBytesMin: 1_000,
    shedNatsLagMsMin: 200,
    shedPressureMs: 0,
    shedCalmMs: 500,
  });
  const refused = new RefusedConnections(now as Millis);
  for (let each = 0; each < 60; each++)
    refused.receiveRefusal({ close: "unauthorized", tenant: undefined, address: undefined }, now as Millis);
  const stop = watchPressure(
    { shed, outbound, refused },
    { measure: () => pressures.shift() ?? CALM, outboundP99Ms: () => 400 },
    (level) => levels.push(level),
    {
      clock,
      log: SILENT_LOG,
      metrics: gatewayMetrics(registry),
      operations: { report: (report) => void reports.push(report) },
    },
  );
  const look = (): void => {
    now += 500;
    timers.shift()!();
  };
  look();
  expect(reports).toEqual([
    { kind: "connections_refused", state: "refused", close: "unauthorized", count: 60, forMs: 0 },
    { kind: "shed_level", from: 0, to: 1, cause: "delay", ...CALM, delayMs: 300 },
  ]);
  expect(await registry.metrics()).toMatch(/^coroom_gateway_shed_level 1$/m);
  expect(await registry.metrics(), "delay at the sockets and before them").toMatch(/^coroom_gateway_outbound_p99_seconds 0.7$/m);
  look();
  look();
  expect(levels).toEqual([1, 0]);
  stop();
  expect(timers).toEqual([]);
});
