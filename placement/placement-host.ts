/**
 * One placement process: collects heartbeats and plans, answers locate requests, and leads if no other process does.
 * All placement processes give the same answers. If none runs, gateways choose by hash.
 */

import type { LocateReply, LocateRequest } from "../shared/bus/placement-messages.ts";
import { Membership } from "../shared/cluster/membership.ts";
import type { CooledRoomsOptions } from "./cooled-rooms.ts";
import type { DecideOptions } from "./decide.ts";
import { LeaderHost, type LeaderDeps, type LeaderPorts } from "./leader-host.ts";
import type { RoomPins, PlacementRequests, RoomEntryFeed } from "./ports.ts";
import { PlacementView, decideOwner } from "./view.ts";

export type PlacementPorts = LeaderPorts & {
  readonly rooms: RoomEntryFeed;
  readonly pins: RoomPins;
  readonly questions: PlacementRequests;
};
/** `holder`: the unique name of this run. */
export type PlacementOptions = DecideOptions &
  CooledRoomsOptions & {
    readonly holder: string;
    readonly serverSilenceMsMax: number;
    readonly placementLeaseMs: number;
    readonly controlLoopMs: number;
  };

export function hostPlacement(ports: PlacementPorts, options: PlacementOptions, deps: LeaderDeps): { stop(): void } {
  const { clock, log, metrics } = deps;
  const membership = new Membership({ silenceMsMax: options.serverSilenceMsMax });
  const view = new PlacementView();
  const leader = new LeaderHost(view, membership, ports, { ...options, leaseMs: options.placementLeaseMs }, deps);

  const locate = async (request: LocateRequest): Promise<LocateReply> => {
    const entry = await ports.rooms.entry(request.room);
    const now = clock.now();
    const servers = {
      available: membership.available(now),
      isLive: (server: LocateRequest["suspects"][number]) => membership.isLive(server, now),
    };
    const reply = decideOwner(request, entry, view.replicaOf(request.room), servers);
    metrics.locates.inc({ answer: reply.kind });
    if (reply.kind === "none") log.warn({ room: request.room, suspects: request.suspects }, "no room server for a room");
    return reply;
  };

  const placed = Promise.all([
    ports.rooms.onEntry((room, entry) => view.receiveEntry(room, entry)),
    ports.plans.onEntry((room, planned) => void view.receivePlanned(room, planned)),
    ports.pins.onEntry((room, pin) => view.receivePin(room, pin)),
  ]);
  ports.questions.onHeartbeat((heartbeat) => membership.receiveHeartbeat(heartbeat, clock.now()));
  ports.questions.onLocate(locate);
  void placed.then(() => leader.start()); // Starts after all entries have arrived: a room without its entry would look released.
  return { stop: () => leader.stop() };
}
