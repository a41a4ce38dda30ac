/** Starts one room server. */

import { randomBytes } from "node:crypto";

import type { Registry } from "prom-client";

import type { LocalOwners } from "../shared/bus/envelope.ts";
import { VITAL_ROOMS_MAX } from "../shared/bus/vitals.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import { endOfTurn, eventLoopDelay } from "../shared/io/event-loop.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { HEARTBEATS_MISSED_MAX, Membership } from "../shared/cluster/membership.ts";
import { pause } from "../shared/time/pause.ts";
import type { SharedConfig } from "../shared/settings/common-settings.ts";
import { refuseUnfit, type RoomServerConfig } from "./config.ts";
import { datedEpochs } from "./io/dated-epochs.ts";
import { hmacSeal } from "./io/hmac.ts";
import { LogStorage } from "./io/log-storage.ts";
import { connectBus } from "./io/nats-bus.ts";
import { tracedPorts } from "./io/traced-ports.ts";
import { LoadMeter } from "./load/load-meter.ts";
import { largestRooms, listRooms } from "./load/room-list.ts";
import { startSharing } from "./load/sharing-host.ts";
import { roomServerMetrics } from "./metrics.ts";
import { sendServerHeartbeats, LISTEN_HEARTBEATS, listenToPeers } from "./ownership/heartbeat-host.ts";
import type { Epochs } from "./ports.ts";
import { assembleRoomServer } from "./room-server.ts";

export type RoomServer = Running & { readonly server: ServerId };
type RoomServerDeps = { log: Log; registry: Registry; localOwners?: LocalOwners | undefined; epochs?: Epochs };

/** `localOwners`: shared with a gateway of this process. `epochs`: for tests, which count them. */
export async function startRoomServer(
  config: SharedConfig & RoomServerConfig,
  { log, registry, localOwners, epochs = datedEpochs(clock, Math.random) }: RoomServerDeps,
): Promise<RoomServer> {
  refuseUnfit(config);
  const server = `rs-${randomBytes(8).toString("hex")}` as ServerId;
  const deps = { clock, log, metrics: roomServerMetrics(registry) };
  const storage = new LogStorage(deps);
  const bus = await connectBus(server, config, { ...deps, storage, localOwners });
  const loads = new LoadMeter(bus.options);
  const traces = await startTraces(config, { role: "room-server", instance: server }, { log, registry });
  const traced = traces === undefined ? bus.ports : tracedPorts(bus.ports, traces.edits);
  const membership = new Membership({ silenceMsMax: HEARTBEATS_MISSED_MAX * config.heartbeatMs });
  const memoryBytes = (): number => process.memoryUsage.rss();
  const parts = assembleRoomServer(server, { ...traced, seal: hmacSeal(config.roomSecret, config, clock), epochs }, bus.options, {
    ...deps,
    endOfTurn: endOfTurn(),
    membership,
    loads,
    memoryBytes,
  });
  const { rooms, replicas, presence, handovers, takeovers } = parts;

  const receiveLost = (lost: ServerId): void => void takeovers.receiveLost(lost);
  const stopListening = listenToPeers(server, membership, bus.peers, { clock, log, receiveLost });
  await pause(clock, LISTEN_HEARTBEATS * config.heartbeatMs); // After this wait, the heartbeat of every live server has arrived.
  const editsPerSecondOf = (room: RoomKey): number => loads.editsPerSecondOf(room);
  await bus.answer({ ...parts, listRooms: (question) => listRooms(server, presence, editsPerSecondOf, question) });
  const stopVitals = bus.publishVitals(() => largestRooms(presence, editsPerSecondOf, VITAL_ROOMS_MAX), registry);
  const describe = () => ({ ...parts.describe(), ...(storage.obstacle === undefined ? {} : { logObstacle: storage.obstacle }) });
  const heart = sendServerHeartbeats(describe, bus.peers, clock, config.heartbeatMs);
  storage.onSpeedChange((speed) => bus.ports.operations.report({ kind: "log_slow", ...speed }));
  storage.onChange((failure) => {
    bus.ports.operations.report({ kind: "log_storage", state: failure ?? "stores" });
    heart.beatNow();
  });
  const delay = eventLoopDelay();
  const { counts } = bus;
  const stopSharing = startSharing(
    server,
    parts,
    { counts, operations: bus.ports.operations, measureDelayMs: delay.measure },
    config,
    deps,
  );
  log.info({ server }, "room server is ready");

  const stop = async (): Promise<void> => {
    await handovers.drain();
    await rooms.stop();
    replicas.stop();
    presence.stop();
    heart.stop();
    stopListening();
    stopSharing();
    stopVitals();
    delay.stop();
    await bus.stop();
    await traces?.stop();
    log.info({ server }, "room server has stopped");
  };
  return { server, stop: stopOnce(stop), obstacle: () => storage.obstacle };
}
