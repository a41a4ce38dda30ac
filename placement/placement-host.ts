/**
 * One placement process: hears who is alive and what is planned, answers who should own a room, and leads if no other
 * does. Any number of them give the same answer, and with none the gateways hash for themselves.
 */

import type { LocateReply, LocateRequest } from "../shared/bus/placement-messages.ts";
import { Membership } from "../shared/membership.ts";
import type { CooledOptions } from "./cooled.ts";
import type { DecideOptions } from "./decide.ts";
import { Leader, type LeaderDeps, type LeaderPorts } from "./leader-host.ts";
import { decideOwner } from "./locate.ts";
import type { Pins, Questions, Rooms } from "./ports.ts";
import { View } from "./view.ts";

export type PlacementPorts = LeaderPorts & { readonly rooms: Rooms; readonly pins: Pins; readonly questions: Questions };
/** `holder`: the name of this run; no other ever has it. */
export type PlacementOptions = DecideOptions &
  CooledOptions & {
    readonly holder: string;
    readonly serverSilenceMsMax: number;
    readonly placementLeaseMs: number;
    readonly controlLoopMs: number;
  };

export function hostPlacement(ports: PlacementPorts, options: PlacementOptions, deps: LeaderDeps): { stop(): void } {
  const { clock, log, metrics } = deps;
  const membership = new Membership({ silenceMsMax: options.serverSilenceMsMax });
  const view = new View();
  const leader = new Leader(view, membership, ports, { ...options, leaseMs: options.placementLeaseMs }, deps);

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

  const told = Promise.all([
    ports.rooms.onEntry((room, entry) => view.receiveEntry(room, entry)),
    ports.plans.onEntry((room, planned) => view.receivePlanned(room, planned)),
    ports.pins.onEntry((room, pin) => view.receivePin(room, pin)),
  ]);
  ports.questions.onHeartbeat((heartbeat) => membership.receiveHeartbeat(heartbeat, clock.now()));
  ports.questions.onLocate(locate);
  void told.then(() => leader.start()); // A room whose entry is still to come would look released.
  return { stop: () => leader.stop() };
}
