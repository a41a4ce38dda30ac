/** What a gateway knows of all rooms and of all gateways, asked over HTTP (`gateway/operations-openapi.json`), a line for each. */

import { z } from "zod";

import type { Values } from "../shared/config.ts";
import { type Answer, askGateway } from "./ask-gateway.ts";
import type { Gateway, opsGatewaysSettings, opsRoomsSettings } from "./admin-settings.ts";
import type { Say } from "./command.ts";
import { localSecrets } from "./secrets.ts";

/** As many as a gateway lists in one answer. */
const PAGE_ROOMS_MAX = 100;

const RoomPage = z.object({
  rooms: z.array(
    z.object({
      tenant: z.string(),
      room: z.string(),
      server: z.string(),
      epoch: z.number(),
      mode: z.string(),
      participants: z.number(),
      gateways: z.number(),
      editsPerSecond: z.number(),
      heldBack: z.number(),
    }),
  ),
  matching: z.number(),
  servers: z.number(),
  serversKnown: z.number(),
  next: z.string().optional(),
});
type RoomPage = z.infer<typeof RoomPage>;

const Fleet = z.object({
  reachesNats: z.boolean(),
  gateways: z.array(
    z.object({ gateway: z.string(), connections: z.number(), rooms: z.number(), shedLevel: z.number(), state: z.string() }),
  ),
});

/** Those with most participants first, page after page up to `limit`. */
export async function listRooms(config: Values<typeof opsRoomsSettings>, say: Say): Promise<void> {
  let [left, after] = [config.limit, ""];
  for (;;) {
    const { tenant, search } = config;
    const wanted = { tenant, search, limit: String(Math.min(left, PAGE_ROOMS_MAX)), after };
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== ""));
    const page = RoomPage.parse(await ask(config, `/rooms?${query}`));
    for (const room of page.rooms) say(roomLine(room));
    left -= page.rooms.length;
    if (page.next === undefined || left <= 0) return sayTotal(page, config.limit - left, say);
    after = page.next;
  }
}

function roomLine({ tenant, room, heldBack, ...facts }: RoomPage["rooms"][number]): string {
  const { mode, participants, gateways, editsPerSecond, server, epoch } = facts;
  const said = { participants, editsPerSecond: Math.round(editsPerSecond * 10) / 10, mode, gateways, server, epoch };
  return [`${tenant}.${room}`, ...Object.entries(said).map(([name, value]) => `${name}=${value}`), ...held(heldBack)].join(" ");
}

function held(level: number): string[] {
  return level === 0 ? [] : [`heldBack=${level}`];
}

function sayTotal({ matching, servers, serversKnown }: RoomPage, listed: number, say: Say): void {
  say(matching === 0 ? "no such room is open: one opens when somebody joins it" : `${listed} of ${matching} open rooms`);
  if (servers < serversKnown) say(`${serversKnown - servers} of ${serversKnown} room servers did not answer: their rooms are missing`);
}

export async function listGateways(config: Values<typeof opsGatewaysSettings>, say: Say): Promise<void> {
  const { reachesNats, gateways } = Fleet.parse(await ask(config, "/fleet"));
  for (const { gateway, state, connections, rooms, shedLevel } of gateways)
    say([gateway, state, `connections=${connections}`, `rooms=${rooms}`, ...(shedLevel === 0 ? [] : [`shedLevel=${shedLevel}`])].join(" "));
  if (!reachesNats)
    say("the gateway that was asked does not reach NATS: of others it knows nothing. See to NATS, or give another with --url");
}

function ask({ url, token, internalSecret, dataDir }: Gateway, path: string): Promise<Answer> {
  return askGateway(new URL(`/v1/admin${path}`, url), token || internalSecret || localSecrets(dataDir).internalSecret, {});
}
