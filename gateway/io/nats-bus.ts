/** All that a gateway says and hears on NATS, each part by what it is for. */

import type { GatewayAccount } from "../../shared/bus/fleet-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { GatewayId } from "../../shared/ids.ts";
import { closeNats, connectAs } from "../../shared/io/nats.ts";
import { natsCounts } from "../../shared/io/nats-counts.ts";
import { ensureOperationsStream, natsOperations } from "../../shared/io/nats-operations.ts";
import type { SharedConfig } from "../../shared/settings.ts";
import { type GatewayConfig, refuseUnsendable } from "../config.ts";
import type { HostDeps } from "../host-deps.ts";
import type { Backbone } from "../ports.ts";
import { logParts } from "./log-parts.ts";
import { natsActivities } from "./nats-activities.ts";
import { natsOrders, natsSanctions } from "./nats-admin.ts";
import { type BoardListener, natsBoards } from "./nats-boards.ts";
import { natsEvents } from "./nats-events.ts";
import { answerGatewayQuestions, natsFleet } from "./nats-fleet.ts";
import { natsOpenRooms } from "./nats-open-rooms.ts";
import { natsPlacement } from "./nats-placement.ts";
import { natsPresence } from "./nats-presence.ts";
import { natsRooms } from "./nats-rooms.ts";
import { natsServices } from "./nats-services.ts";

export type Listeners = { readonly rooms: Backbone; readonly presence: Backbone; readonly boards: BoardListener };

export async function connectBus(
  gateway: GatewayId,
  config: SharedConfig & GatewayConfig & { serverSilenceMsMax: number },
  deps: HostDeps,
) {
  const nats = await connectAs(`gateway ${gateway}`, config);
  refuseUnsendable(config, nats.info?.max_payload);
  const subjects = subjectsOf(config.environment);
  const parts = await logParts(nats, subjects, config.logPartitions, deps);
  await ensureOperationsStream(nats, subjects, config);
  const { clock, metrics } = deps;
  const [rooms, presence] = [natsRooms(nats, subjects, gateway, deps), natsPresence(nats, subjects, gateway, deps)];
  const [documents, leaderboards] = [
    natsServices(nats, subjects.documents, clock, config.streamedAnswersMax),
    natsServices(nats, subjects.leaderboards, clock),
  ];
  const placement = natsPlacement(nats, subjects, config, clock);
  const boards = natsBoards(nats, subjects, leaderboards);
  return {
    nats,
    operations: natsOperations(nats, subjects, gateway, { ...deps, count: (kind) => metrics.events.inc({ kind }) }),
    isMisconfigured: parts.areOthers,
    services: { documents, leaderboards },
    ports: {
      rooms: rooms.rooms,
      presence: presence.rooms,
      boardBus: boards.boardBus,
      activities: natsActivities(nats, subjects, { ...config, mayTell: () => !parts.areOthers() }),
      placement,
      counts: natsCounts(nats, subjects),
      sanctionsLine: natsSanctions(nats, subjects, gateway),
      orders: natsOrders(nats, subjects),
    },
    operators: {
      fleet: natsFleet(nats, subjects, placement, config, clock),
      openRooms: natsOpenRooms(nats, subjects, () => placement.servers().length, config),
      events: natsEvents(nats, subjects, config, deps),
    },
    onGatewayAsked: (account: () => GatewayAccount, drain: () => void): void => answerGatewayQuestions(nats, subjects, account, drain),
    start: async (listeners: Listeners): Promise<void> => {
      await rooms.start(listeners.rooms);
      await presence.start(listeners.presence);
      boards.start(listeners.boards);
    },
    stop: (): Promise<void> => {
      parts.stop();
      return closeNats(nats);
    },
  };
}
