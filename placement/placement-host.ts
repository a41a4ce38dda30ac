/**
 * Hears who is alive and answers who should own a room. Keeps nothing that matters: any number of
 * placement processes give the same answer, and with none the gateways hash for themselves.
 */

import type { LocateReply, LocateRequest } from "../shared/bus/placement-messages.ts";
import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import { Membership } from "../shared/membership.ts";
import { decideOwner } from "./locate.ts";
import type { PlacementMetrics } from "./metrics.ts";
import type { Questions, Rooms } from "./ports.ts";

export function hostPlacement(ports: { rooms: Rooms; questions: Questions }, options: { serverSilenceMsMax: number }, { clock, log, metrics }: { clock: Clock; log: Log; metrics: PlacementMetrics }): void {
  const membership = new Membership({ silenceMsMax: options.serverSilenceMsMax });

  const locate = async (request: LocateRequest): Promise<LocateReply> => {
    const entry = await ports.rooms.entry(request.room);
    const now = clock.now();
    const reply = decideOwner(request, entry, { available: membership.available(now), isLive: (server) => membership.isLive(server, now) });
    metrics.locates.inc({ answer: reply.kind });
    if (reply.kind === "none") log.warn({ room: request.room, suspects: request.suspects }, "no room server for a room");
    return reply;
  };

  ports.questions.onHeartbeat((heartbeat) => membership.receiveHeartbeat(heartbeat, clock.now()));
  ports.questions.onLocate(locate);
}
