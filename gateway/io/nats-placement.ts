/** Asks placement and room servers by request and reply, and hears which room servers live, for when placement does not answer. */

import { ClaimReply, decodeJson, LocateReply, ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection } from "../../shared/io/nats.ts";
import { askNats } from "../../shared/io/nats-ask.ts";
import { Membership } from "../../shared/membership.ts";
import { rendezvous } from "../../shared/rendezvous.ts";
import type { Placement } from "../ports.ts";

const LOCATE_MS_MAX = 500;
const CLAIM_MS_MAX = 2_000;
const LOOK_MS = 50;

export function natsPlacement(nats: NatsConnection, subjects: Subjects, options: { serverSilenceMsMax: number }, clock: Clock): Placement {
  const membership = new Membership({ silenceMsMax: options.serverSilenceMsMax });
  nats.subscribe(subjects.servers, {
    callback: crashing((error, msg) => {
      const heartbeat = error === null ? decodeJson(ServerHeartbeat, msg.data) : undefined;
      if (heartbeat !== undefined) membership.receiveHeartbeat(heartbeat, clock.now());
    }),
  });

  let receiveLost: (server: ServerId) => void = () => {};
  const look = (): void => {
    for (const server of membership.takeLost(clock.now())) receiveLost(server);
    cancelLook = clock.after(LOOK_MS, look);
  };
  let cancelLook = clock.after(LOOK_MS, look);
  void nats.closed().then(() => cancelLook());

  return {
    locate: (request) => askNats(nats, subjects.locate, request, LocateReply, LOCATE_MS_MAX),
    claim: (server, request) => askNats(nats, subjects.claim(server), request, ClaimReply, CLAIM_MS_MAX),
    candidates: (room) => rendezvous(room, membership.available(clock.now())),
    onServerLost: (receive) => (receiveLost = receive),
  };
}
