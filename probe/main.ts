/** Starts a probe: ordinary clients in rooms of its own, which measure what people would notice. */

import type { Registry } from "prom-client";

import { fetchSnapshot } from "../client/io/fetch-snapshot.ts";
import { openSocket } from "../client/io/node-socket.ts";
import { systemChance as chance, systemClock as clientClock } from "../client/io/system.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis } from "../shared/ids.ts";
import { loopDelay } from "../shared/io/loop-delay.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import { type ProbeConfig, refuseUnfit, type TokenConfig } from "./config.ts";
import { count } from "./findings.ts";
import { tokensFor } from "./io/tokens.ts";
import { probeMetrics } from "./metrics.ts";
import { ParticipantHost } from "./participant-host.ts";
import { planRooms } from "./plan.ts";
import { ProbedRoom } from "./room-host.ts";
import { tellState } from "./state.ts";

/** A millisecond is much of what is measured. */
const clock: Clock = { ...systemClock, now: () => performance.now() as Millis };
const world = { clock: clientClock, chance, openSocket, fetchSnapshot };
const STATE_EVERY_MS = 1_000;

/** Throws where it cannot start so. Whether gateways can be reached is what it finds out, not what it needs. */
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
  const delay = loopDelay();
  const tell = (): void => tellState(rooms, delay.measure(), clock.now(), metrics);
  tell();
  const telling = setInterval(tell, STATE_EVERY_MS);
  log.info(
    { rooms: rooms.length, connections: rooms.reduce((sum, { size }) => sum + size, 0), gateways: config.probeGatewayUrls },
    "the probe enters its rooms",
  );
  const stop = async (): Promise<void> => {
    clearInterval(telling);
    delay.stop();
    for (const room of rooms) room.leave();
  };
  return { stop };
}
