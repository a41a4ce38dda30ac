/** Assembles a room server from its parts, on real ports (`main.ts`) or simulated ones (tests), and adds up the costs of each room. */

import type { AlarmDeps } from "../shared/time/alarm.ts";
import type { ServerHeartbeat, ServerLabels } from "../shared/bus/placement-messages.ts";
import type { ServerId, RoomKey } from "../shared/ids.ts";
import type { Membership } from "../shared/cluster/membership.ts";
import { BacklogBudget } from "./rooms/backlog.ts";
import { RoomHandovers, RoomTakeovers } from "./ownership/handovers-host.ts";
import { isBelievedAlive } from "./ownership/heartbeat-host.ts";
import type { LoadMeter, LoadMeterOptions } from "./load/load-meter.ts";
import type { RoomActivityReports, FanOut, OtherServers, PresenceBus } from "./ports.ts";
import { OwnerPresenceHost, type OwnerPresenceHostOptions } from "./presence/presence-host.ts";
import { Replicas } from "./ownership/replicas-host.ts";
import { OwnedRooms, type OwnedRoomsDeps, type OwnedRoomsOptions, type OwnedRoomsPorts } from "./ownership/owned-rooms-host.ts";
import type { CostlyRooms } from "./load/sharing-host.ts";

export type RoomServerPorts = Omit<OwnedRoomsPorts, "presence"> & {
  readonly presenceBus: PresenceBus;
  readonly fanOut: FanOut;
  readonly activity: RoomActivityReports;
  readonly others: OtherServers;
};
export type RoomServerOptions = OwnedRoomsOptions &
  OwnerPresenceHostOptions &
  LoadMeterOptions & {
    readonly backlogTotalBytesMax: number;
    readonly replicasMax: number;
    readonly handOverMsMax: number;
    readonly labels: ServerLabels;
  };
type RoomServerDeps = AlarmDeps &
  Pick<OwnedRoomsDeps, "log" | "metrics"> & {
    readonly membership: Membership;
    readonly loads: LoadMeter;
    readonly memoryBytes: () => number;
  };
export type RoomServerParts = {
  readonly rooms: OwnedRooms;
  readonly replicas: Replicas;
  readonly presence: OwnerPresenceHost;
  readonly handovers: RoomHandovers;
  readonly takeovers: RoomTakeovers;
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
  const presence = new OwnerPresenceHost(ports.presenceBus, options, {
    ...deps,
    operations: ports.operations,
    onDeposed: (room) => rooms.receiveDoubt(room),
    presenceSent: (room, bytes) => deps.loads.count(room, 0, bytes),
    activity: ports.activity,
  });
  const costs = new RoomCosts(presence);
  const loads: Pick<LoadMeter, "count"> = {
    count: (room, edits, bytes) => {
      deps.loads.count(room, edits, bytes);
      costs.receiveRecord(room, edits, bytes);
    },
  };
  const listeningSince = clock.now();
  const rooms = new OwnedRooms(server, { ...ports, presence }, options, {
    ...deps,
    loads,
    budget,
    replicas,
    isLive: (peer) => isBelievedAlive(membership, listeningSince, peer, clock.now()),
  });
  ports.fanOut.onGap(() => rooms.receiveReconnect());
  const handovers = new RoomHandovers(server, { rooms, replicas, others: ports.others }, options, {
    ...deps,
    available: () => membership.available(clock.now()),
  });
  const takeovers = new RoomTakeovers({ rooms, replicas }, deps);
  const costly: CostlyRooms = {
    eachCost: (receive) => costs.each(receive),
    holdBack: (room, level) => {
      presence.holdBack(room, level);
      rooms.holdBack(room, level);
    },
  };
  const describe = () => ({
    server,
    rooms: rooms.rooms,
    draining: rooms.isStopping,
    labels: options.labels,
    load: deps.loads.read(deps.memoryBytes(), clock.now()),
  });
  return { rooms, replicas, presence, handovers, takeovers, costly, describe };
}

type PresenceCosts = { isHere(room: RoomKey): boolean; eachCost(receive: (room: RoomKey, cost: number) => void): void };

/**
 * The cost of each room since this server owns it, in one unit: a presence state, a record, an edit and a KiB of records
 * count the same. Presence begins and ends with ownership, so its rooms are the owned rooms.
 */
export class RoomCosts {
  readonly #presence: PresenceCosts;
  readonly #edits = new Map<RoomKey, number>();

  constructor(presence: PresenceCosts) {
    this.#presence = presence;
  }

  receiveRecord(room: RoomKey, edits: number, bytes: number): void {
    this.#edits.set(room, (this.#edits.get(room) ?? 0) + 1 + edits + bytes / 1024);
  }

  each(receive: (room: RoomKey, cost: number) => void): void {
    for (const room of this.#edits.keys()) if (!this.#presence.isHere(room)) this.#edits.delete(room);
    this.#presence.eachCost((room, cost) => receive(room, cost + (this.#edits.get(room) ?? 0)));
  }
}
