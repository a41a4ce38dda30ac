/** Connects the gateway to NATS, and builds each adapter that uses the connection. */

import type { GatewayReport } from "../../../shared/bus/fleet-messages.ts";
import { FullStorage, StoragePeaks } from "../../../shared/bus/storage-messages.ts";
import { subjectsOf, type Subjects } from "../../../shared/bus/subjects.ts";
import type { GatewayId } from "../../../shared/ids.ts";
import { closeNats, connectAs, logForbidden, type NatsConnection } from "../../../shared/io/nats.ts";
import { natsCounts } from "../../../shared/io/nats-counts.ts";
import { subscribeJson } from "../../../shared/io/nats-json.ts";
import { trustedCertificates } from "../../../shared/io/internal-tls.ts";
import { natsOperations } from "../../../shared/io/nats-operations.ts";
import type { SharedConfig } from "../../../shared/settings/common-settings.ts";
import { type GatewayConfig, refuseUnsendable } from "../../config.ts";
import type { GatewayDeps } from "../../gateway.ts";
import type { Backbone, PresenceBackbone, StorageReports } from "../../ports.ts";
import { natsAdminCommands, natsSanctions } from "./nats-admin.ts";
import { type BoardListener, natsBoards, natsActivities } from "./nats-boards.ts";
import { natsEvents } from "./nats-events.ts";
import { answerGatewayQuestions, natsFleet, natsOpenRooms } from "./nats-fleet.ts";
import { natsPlacement } from "./nats-placement.ts";
import { natsVitals } from "./nats-vitals.ts";
import { natsServices } from "./nats-services.ts";
import { natsPresenceServers } from "./nats-presence.ts";
import { natsRoomOwners, type RoomOwnersDeps } from "./nats-rooms.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import { SettingError } from "../../../shared/settings/settings.ts";
import { checkLogPartitions } from "../../../shared/io/log-stream.ts";
import type { Log } from "../../../shared/process/log.ts";
import { rethrowMistake } from "../../../shared/time/pause.ts";

type BusListeners = { readonly rooms: Backbone; readonly presence: PresenceBackbone; readonly boards: BoardListener };

export async function connectBus(
  gateway: GatewayId,
  config: SharedConfig & GatewayConfig & { serverSilenceMsMax: number },
  deps: GatewayDeps & RoomOwnersDeps,
) {
  const [nats, presenceNats] = await Promise.all([
    connectAs("gateway", `gateway ${gateway}`, config),
    connectAs("gateway", `gateway ${gateway} presence`, config), // No edit waits behind presence.
  ]);
  for (const connection of [nats, presenceNats]) logForbidden(connection, deps.log);
  refuseUnsendable(config, nats.info?.max_payload);
  const subjects = subjectsOf(config.environment);
  const parts = await checkPartitions(nats, subjects, config.logPartitions, deps);
  const { clock, metrics } = deps;
  const rooms = natsRoomOwners(nats, subjects, gateway, deps);
  const presence = natsPresenceServers(presenceNats, subjects, gateway, deps);
  const ca = trustedCertificates(config.internalCaFile);
  const onWait = (): void => metrics.limitsReached.inc({ limit: "service-connections" });
  const [documents, leaderboards] = [
    natsServices(nats, subjects.documents, deps, { ca, onWait, streamsMax: config.streamedAnswersMax }),
    natsServices(nats, subjects.leaderboards, deps, { ca, onWait }),
  ];
  const placement = natsPlacement(nats, subjects, config, clock);
  const operations = natsOperations(nats, subjects, gateway, { ...deps, count: (kind) => metrics.events.inc({ kind }) });
  const vitals = natsVitals(nats, subjects, gateway, clock, operations);
  const boards = natsBoards(nats, subjects, leaderboards);
  return {
    nats,
    operations,
    isMisconfigured: parts.differ,
    services: { documents, leaderboards },
    ports: {
      rooms: rooms.rooms,
      presence: presence.servers,
      boardBus: boards.boardBus,
      activities: natsActivities(nats, subjects, { ...config, mayReport: () => !parts.differ() }),
      placement,
      counts: natsCounts(nats, subjects),
      sanctionsBus: natsSanctions(nats, subjects, gateway),
      storageReports: storageReportsOf(nats, subjects),
      commands: natsAdminCommands(nats, subjects, { gateway, running: () => vitals.gateways() }),
    },
    operators: {
      fleet: natsFleet(nats, subjects, placement, clock),
      openRooms: natsOpenRooms(nats, subjects, () => placement.servers().length),
      events: natsEvents(nats, subjects, config, deps),
      vitals: vitals.history,
    },
    startVitals: vitals.start,
    onGatewayAsked: (account: () => GatewayReport, drain: () => void): void => answerGatewayQuestions(nats, subjects, account, drain),
    start: async (listeners: BusListeners): Promise<void> => {
      await rooms.start(listeners.rooms);
      await presence.start(listeners.presence);
      boards.start(listeners.boards);
    },
    stop: async (): Promise<void> => {
      parts.stop();
      rooms.stop();
      await Promise.all([closeNats(nats), closeNats(presenceNats)]);
    },
  };
}

/** What rooms and tenants store, as document services report. */
function storageReportsOf(nats: NatsConnection, subjects: Subjects): StorageReports {
  return {
    onFull: (receive) => void subscribeJson(nats, subjects.storageFull, FullStorage, receive),
    // The queue lets one gateway write to Redis, and not all of them.
    onPeaks: (receive) => void subscribeJson(nats, subjects.storagePeaks, StoragePeaks, receive, { queue: "usage" }),
  };
}

/**
 * Checks that this gateway divides rooms into as many partitions as the log. With another number it would use
 * partitions in which no leaderboard counts the room. A gateway that starts before any log exists repeats the check
 * until there is one.
 */
type PartitionCheck = { readonly differ: () => boolean; readonly stop: () => void };

const ASK_AGAIN_MS = 1_000;

/** Throws a SettingError when the log has another number of partitions. */
async function checkPartitions(
  nats: NatsConnection,
  subjects: Subjects,
  partitions: number,
  { clock, log }: { clock: Clock; log: Log },
): Promise<PartitionCheck> {
  let areOthers = false;
  let isStopped = false;
  let callOff = (): void => {};
  const askLater = (): void => {
    if (!isStopped) callOff = clock.after(ASK_AGAIN_MS, ask);
  };
  const ask = (): void => {
    checkLogPartitions(nats, subjects, partitions).then(
      (isStated) => isStated || askLater(),
      (cause: unknown) => {
        rethrowMistake(cause);
        areOthers = cause instanceof SettingError;
        if (areOthers)
          log.error(
            { cause },
            "this gateway takes no connections: it was started with another COROOM_LOG_PARTITIONS than the deployment's",
          );
        else askLater(); // NATS does not answer now.
      },
    );
  };
  if (!(await checkLogPartitions(nats, subjects, partitions))) askLater();
  return {
    differ: () => areOthers,
    stop: () => {
      isStopped = true;
      callOff();
    },
  };
}
