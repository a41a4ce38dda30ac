/** A room server put together from its parts, on whatever ports it is given: real ones in `main.ts`, simulated ones in tests. */

import type { AlarmDeps } from "../shared/alarm.ts";
import type { ServerHeartbeat, ServerLabels } from "../shared/bus/placement-messages.ts";
import type { ServerId } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import type { Membership } from "../shared/membership.ts";
import { BacklogBudget } from "./rooms/backlog.ts";
import type { CostlyRooms } from "./load/fair-share-host.ts";
import { HandOvers } from "./ownership/hand-overs-host.ts";
import { isBelievedAlive } from "./ownership/heart.ts";
import type { LoadMeter, LoadMeterOptions } from "./load/load-meter.ts";
import type { RoomServerMetrics } from "./metrics.ts";
import type { Activity, FanOut, OtherServers, PresenceBus } from "./ports.ts";
import { PresenceHost, type PresenceHostOptions } from "./presence/presence-host.ts";
import { Replicas } from "./ownership/replicas-host.ts";
import { RoomCosts } from "./load/room-costs.ts";
import { TakeOvers } from "./ownership/take-overs-host.ts";
import { RoomHost, type RoomHostOptions, type RoomHostPorts } from "./ownership/room-host.ts";

export type RoomServerPorts = Omit<RoomHostPorts, "presence"> & {
  readonly presenceBus: PresenceBus;
  readonly fanOut: FanOut;
  readonly activity: Activity;
  readonly others: OtherServers;
};
export type RoomServerOptions = RoomHostOptions &
  PresenceHostOptions &
  LoadMeterOptions & {
    readonly backlogTotalBytesMax: number;
    readonly replicasMax: number;
    readonly handOverMsMax: number;
    readonly labels: ServerLabels;
  };
export type RoomServerDeps = AlarmDeps & {
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly membership: Membership;
  readonly loads: LoadMeter;
  readonly memoryBytes: () => number;
};
export type RoomServerParts = {
  readonly rooms: RoomHost;
  readonly replicas: Replicas;
  readonly presence: PresenceHost;
  readonly handOvers: HandOvers;
  readonly takeOvers: TakeOvers;
  readonly costly: CostlyRooms;
  readonly describe: () => Omit<ServerHeartbeat, "time" | "everyMs">;
};

export function assembleRoomServer(
  server: ServerId,
  ports: RoomServerPorts,
  options: RoomServerOptions,
  deps: RoomServerDeps,
): RoomServerParts {
  const { clock, membership } = deps;
  const budget = new BacklogBudget({ bytesMax: options.backlogTotalBytesMax });
  const replicas = new Replicas(ports, options, { ...deps, budget });
  const presence = new PresenceHost(ports.presenceBus, options, {
    ...deps,
    operations: ports.operations,
    onDeposed: (room) => rooms.receiveDoubt(room),
    activity: ports.activity,
  });
  const costs = new RoomCosts(presence);
  const loads: Pick<LoadMeter, "count"> = {
    count: (room, edits, bytes) => {
      deps.loads.count(room, edits, bytes);
      costs.receiveRecord(room, edits);
    },
  };
  const listeningSince = clock.now();
  const rooms = new RoomHost(server, { ...ports, presence }, options, {
    ...deps,
    loads,
    budget,
    copies: replicas,
    isLive: (peer) => isBelievedAlive(membership, listeningSince, peer, clock.now()),
  });
  ports.fanOut.onGap(() => rooms.receiveLineBack());
  const handOvers = new HandOvers(server, { rooms, replicas, others: ports.others }, options, {
    ...deps,
    available: () => membership.available(clock.now()),
  });
  const takeOvers = new TakeOvers({ rooms, replicas }, deps);
  const costly: CostlyRooms = {
    eachCost: (tell) => costs.each(tell),
    holdBack: (room, level) => {
      presence.holdBack(room, level);
      rooms.holdBack(room, level);
    },
  };
  const describe = () => ({
    server,
    rooms: rooms.rooms,
    draining: rooms.stopping,
    labels: options.labels,
    load: deps.loads.read(deps.memoryBytes(), clock.now()),
  });
  return { rooms, replicas, presence, handOvers, takeOvers, costly, describe };
}
