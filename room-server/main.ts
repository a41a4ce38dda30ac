/** Starts one room server. */

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

import type { Registry } from "prom-client";

import { subjectsOf } from "../shared/bus/subjects.ts";
import type { ServerId } from "../shared/ids.ts";
import { loopDelay } from "../shared/io/loop-delay.ts";
import { closeNats, connectAs } from "../shared/io/nats.ts";
import { natsCounts } from "../shared/io/nats-counts.ts";
import { endOfTurn } from "../shared/io/end-of-turn.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import { BEATS_MISSED_MAX, Membership } from "../shared/membership.ts";
import type { SharedConfig } from "../shared/settings.ts";
import { refuseUnfit, type RoomServerConfig, roomHostOptions } from "./config.ts";
import { tellCounts } from "./load/counts-host.ts";
import { FairShare } from "./load/fair-share.ts";
import { watchBudgets } from "./load/fair-share-host.ts";
import { beatHeart, LISTEN_BEATS, listenToPeers } from "./ownership/heart.ts";
import { datedEpochs } from "./io/dated-epochs.ts";
import { hmacSeal } from "./io/hmac.ts";
import { natsClaims } from "./io/nats-claims.ts";
import { natsHeartbeat } from "./io/nats-heartbeat.ts";
import { natsOrders } from "./io/nats-orders.ts";
import { natsPorts } from "./io/nats-ports.ts";
import { tracedPorts } from "./io/traced-ports.ts";
import { answerQuestions, answerRoomLists } from "./io/nats-questions.ts";
import { LoadMeter } from "./load/load-meter.ts";
import { listRooms } from "./load/room-list.ts";
import { roomServerMetrics } from "./metrics.ts";
import type { Epochs } from "./ports.ts";
import { assembleRoomServer } from "./room-server.ts";

export type RoomServer = Running & { readonly server: ServerId };

/** `epochs`: of tests, which count them. */
export async function startRoomServer(
  config: SharedConfig & RoomServerConfig,
  deps: { log: Log; registry: Registry; epochs?: Epochs },
): Promise<RoomServer> {
  refuseUnfit(config);
  const server = `rs-${randomBytes(8).toString("hex")}` as ServerId;
  const subjects = subjectsOf(config.environment);
  const metrics = roomServerMetrics(deps.registry);
  const { log } = deps;

  const nats = await connectAs(server, config);
  const options = roomHostOptions(
    { ...config, serverHost: config.serverHost === "" ? hostname() : config.serverHost },
    nats.info?.max_payload,
  );
  const loads = new LoadMeter(options);
  const traces = await startTraces(config, { role: "room-server", instance: server }, deps);
  const bus = await natsPorts(nats, subjects, server, config, {
    clock,
    log,
    metrics,
    presenceSent: (room, bytes) => loads.count(room, 0, bytes),
  });
  const ports = {
    ...(traces === undefined ? bus : tracedPorts(bus, traces.edits)),
    seal: hmacSeal(config.roomSecret),
    epochs: deps.epochs ?? datedEpochs(clock, Math.random),
  };
  const membership = new Membership({ silenceMsMax: BEATS_MISSED_MAX * config.heartbeatMs });
  const { rooms, replicas, presence, handOvers, takeOvers, costly, describe } = assembleRoomServer(server, ports, options, {
    clock,
    endOfTurn: endOfTurn(),
    log,
    metrics,
    membership,
    loads,
    memoryBytes: () => process.memoryUsage.rss(),
  });

  const peers = natsHeartbeat(nats, subjects);
  const stopListening = listenToPeers(server, membership, peers, { clock, log, receiveLost: (lost) => void takeOvers.receiveLost(lost) });
  await new Promise<void>((heardAll) => clock.after(LISTEN_BEATS * config.heartbeatMs, heardAll));
  natsClaims(nats, subjects, server, log).onClaim((request) => rooms.claim(request));
  natsOrders(nats, subjects, server, log).onOrder((order) => handOvers.answer(order));
  answerQuestions(nats, subjects, server, (room) => presence.accountOf(room));
  answerRoomLists(nats, subjects, (question) => listRooms(server, presence, (room) => loads.editsPerSecondOf(room), question));
  await nats.flush();
  const stopHeart = beatHeart(describe, peers, clock, config.heartbeatMs);
  const share = new FairShare(config);
  const stopTelling = tellCounts(
    server,
    { tenantRooms: () => rooms.tenantRooms(), fullRooms: () => share.full },
    natsCounts(nats, subjects),
    clock,
  );
  const delay = loopDelay();
  const stopSharing = watchBudgets(share, costly, delay.measure, { clock, metrics, operations: ports.operations });
  log.info({ server }, "room server is ready");

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await handOvers.drain();
    await rooms.stop();
    replicas.stop();
    presence.stop();
    stopHeart();
    peers.sayAlive({ ...describe(), everyMs: config.heartbeatMs, time: clock.wallNow() }); // Its last: it has let go of its rooms, and is not lost.
    stopListening();
    stopTelling();
    stopSharing();
    delay.stop();
    await closeNats(nats);
    await traces?.stop();
    log.info({ server }, "room server has stopped");
  };
  return { server, stop: () => (stopped ??= stop()) };
}
