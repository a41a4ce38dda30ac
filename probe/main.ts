/** Starts a probe: ordinary clients in separate rooms, which measure what users would notice. */

import type { Registry } from "prom-client";

import type { Millis } from "../shared/ids.ts";
import { eventLoopDelay } from "../shared/io/event-loop.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import type { Clock } from "../shared/time/clock.ts";
import { fetchSnapshot } from "../client/io/fetch-snapshot.ts";
import { openSocket } from "../client/io/node-socket.ts";
import { systemChance as chance, systemClock as clientClock } from "../client/io/system.ts";
import { type ProbeConfig, refuseUnfit, type TokenConfig } from "./config.ts";
import { count } from "./findings.ts";
import { tokensFor } from "./io/tokens.ts";
import { probeMetrics } from "./metrics.ts";
import { ParticipantHost } from "./participant-host.ts";
import { planRooms } from "./plan.ts";
import { ProbedRoom, recordState } from "./room-host.ts";

/** A clock with fractions of a millisecond, because a millisecond is a large part of the measured times. */
const clock: Clock = { ...systemClock, now: () => performance.now() as Millis };
const world = { clock: clientClock, chance, openSocket, fetchSnapshot };
const STATE_EVERY_MS = 1_000;

/**
 * Throws if the settings do not allow a start. The probe starts without gateways, because their reachability is what it
 * measures.
 */
export async function startProbe(config: ProbeConfig & TokenConfig, { log, registry }: { log: Log; registry: Registry }): Promise<Running> {
  refuseUnfit(config);
  const metrics = probeMetrics(registry);
  const tokenOf = tokensFor(config);
  const plans = planRooms(config);
  const options = { lateMs: config.probeLateMs, reconnectMs: config.probeReconnectMs, unsavedEditsMax: config.probeUnsavedEditsMax };
  const run = chance.clientKey();
  const rooms = plans.map((plan, place) => {
    const record = (finding: Parameters<typeof count>[2]): void => count(metrics, plan.kind, finding);
    return new ProbedRoom(plan, options, {
      clock,
      unit: chance.unit,
      run,
      record,
      enter: (room, { index, seesPresence }, listener) =>
        new ParticipantHost(
          { room, gateways: config.probeGatewayUrls, first: place + index, token: () => tokenOf(`probe-${index + 1}`), seesPresence },
          listener,
          { clock, world, log, record },
        ),
    });
  });
  const delay = eventLoopDelay();
  const report = (): void => recordState(rooms, delay.measure(), clock.now(), metrics);
  report();
  const reporting = setInterval(report, STATE_EVERY_MS);
  log.info(
    { rooms: rooms.length, connections: rooms.reduce((sum, { size }) => sum + size, 0), gateways: config.probeGatewayUrls },
    "the probe is joining its rooms",
  );
  const stop = async (): Promise<void> => {
    clearInterval(reporting);
    delay.stop();
    for (const room of rooms) room.leave();
  };
  return { stop };
}
