/**
 * Asks placement and room servers by request and reply. Also receives the heartbeats of room servers, which replace
 * placement while it does not answer.
 */

import { encodeJson } from "../../../shared/bus/json-messages.ts";
import { ClaimReply, LocateReply, ServerHeartbeat, type UnreachedServer } from "../../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { ServerId } from "../../../shared/ids.ts";
import { type NatsConnection, publish } from "../../../shared/io/nats.ts";
import { isServerGone, requestReply, subscribeJson } from "../../../shared/io/nats-json.ts";
import { Membership } from "../../../shared/cluster/membership.ts";
import { rankServers } from "../../../shared/cluster/rendezvous.ts";
import { type LostRoomServer, LostRoomServers } from "../../operations/servers-lost.ts";
import type { Placement } from "../../ports.ts";

const LOCATE_MS_MAX = 500;
const CLAIM_MS_MAX = 2_000;
/** The answer is kept for a moment, because hundreds of rooms ask about the same server at once. */
const GONE_KNOWN_MS = 100;
/** Time for which a lost server stays in the list, so that an operator who receives the alert still sees it. */
const LOST = { keptMs: 10 * 60_000, serversMax: 100 } as const;

export function natsPlacement(
  nats: NatsConnection,
  subjects: Subjects,
  options: { serverSilenceMsMax: number },
  clock: Clock,
): Placement & { servers(): ServerHeartbeat[]; serversLost(): readonly LostRoomServer[] } {
  const membership = new Membership({ silenceMsMax: options.serverSilenceMsMax });
  const serversLost = new LostRoomServers(LOST);
  subscribeJson(nats, subjects.servers, ServerHeartbeat, (heartbeat) => {
    membership.receiveHeartbeat(heartbeat, clock.now());
    serversLost.receiveHeartbeat(heartbeat);
    if (heartbeat.ends === true) lose(heartbeat.server); // With its rooms that it did not release.
  });

  let receiveLost: (server: ServerId) => void = () => {};
  const lose = (server: ServerId): void => {
    serversLost.receiveSilence(server, clock.now(), clock.wallNow());
    receiveLost(server);
  };
  const look = (): void => {
    for (const server of membership.takeLost(clock.now())) lose(server);
    lookLater();
  };
  let cancelLook = (): void => {};
  const lookLater = (): void => {
    const now = clock.now();
    cancelLook = clock.after(membership.nextLookAt(now) - now, look);
  };
  lookLater();
  void nats.closed().then(() => cancelLook());

  const asked = new Map<ServerId, Promise<boolean>>();
  const askIfGone = async (server: ServerId): Promise<boolean> => {
    clock.after(GONE_KNOWN_MS, () => asked.delete(server));
    const isGone = await isServerGone(nats, subjects, server);
    if (isGone) publish(nats, subjects.unreachedServers, encodeJson({ server } satisfies UnreachedServer));
    return isGone;
  };
  const isGone = (server: ServerId): Promise<boolean> => {
    const answer = asked.get(server) ?? askIfGone(server);
    asked.set(server, answer);
    return answer;
  };

  return {
    isGone,
    servers: () => membership.live(clock.now()),
    serversLost: () => serversLost.lately(clock.now()),
    locate: (request) => requestReply(nats, subjects.locate, request, LocateReply, LOCATE_MS_MAX),
    claim: (server, request) => requestReply(nats, subjects.claim(server), request, ClaimReply, CLAIM_MS_MAX),
    candidates: (room) => rankServers(room, membership.available(clock.now())),
    onServerLost: (receive) => (receiveLost = receive),
  };
}
