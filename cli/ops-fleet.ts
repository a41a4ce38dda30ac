/** Lists rooms and gateways through a gateway's HTTP API (`gateway/operations-openapi.json`), one line each. */

import { z } from "zod";

import { SettingError, type Values } from "../shared/settings/settings.ts";
import { answerAs, type GatewayAnswer, askGateway, bearerOf } from "./ask-gateway.ts";
import type { GatewayAccess, opsGatewaysSettings, opsProcessesSettings, opsRoomsSettings } from "./command-settings.ts";
import type { PrintLine } from "./command.ts";
import { gatewayFor } from "./local-addresses.ts";

/** Maximum number of rooms in one answer of a gateway. */
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
  /** Gateways of 0.2.0 and earlier do not list them. */
  processes: z
    .array(
      z.object({
        instance: z.string(),
        role: z.string(),
        version: z.string().optional(),
        busVersion: z.number().optional(),
        cannotWorkWith: z.array(z.number()).default([]),
      }),
    )
    .optional(),
  gateways: z.array(
    z.object({ gateway: z.string(), connections: z.number(), rooms: z.number(), shedLevel: z.number(), state: z.string() }),
  ),
});

const UNREACHED =
  "this gateway cannot reach NATS, so the list lacks other processes, or is out of date. Check NATS, or set --url to another gateway";

/** Lists the rooms with most participants first, page by page up to `limit`. */
export async function listRooms(config: Values<typeof opsRoomsSettings>, print: PrintLine): Promise<void> {
  let [left, after] = [config.limit, ""];
  for (;;) {
    const { tenant, search } = config;
    const wanted = { tenant, search, limit: String(Math.min(left, PAGE_ROOMS_MAX)), after };
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== ""));
    const page = answerAs(RoomPage, await ask(config, `/rooms?${query}`));
    for (const room of page.rooms) print(roomLine(room));
    left -= page.rooms.length;
    if (page.next === undefined || left <= 0) return printTotal(page, config.limit - left, print);
    after = page.next;
  }
}

function roomLine({ tenant, room, heldBack, ...facts }: RoomPage["rooms"][number]): string {
  const { mode, participants, gateways, editsPerSecond, server, epoch } = facts;
  const details = { participants, editsPerSecond: Math.round(editsPerSecond * 10) / 10, mode, gateways, server, epoch };
  return [`${tenant}.${room}`, ...Object.entries(details).map(([name, value]) => `${name}=${value}`), ...held(heldBack)].join(" ");
}

function held(level: number): string[] {
  return level === 0 ? [] : [`heldBack=${level}`];
}

function printTotal({ matching, servers, serversKnown }: RoomPage, listed: number, print: PrintLine): void {
  print(matching === 0 ? "no matching room is open. A room opens when a client joins it" : `${listed} of ${matching} open rooms`);
  if (servers < serversKnown)
    print(`${serversKnown - servers} of ${serversKnown} room servers did not answer. Their rooms are missing from this list`);
}

export async function listGateways(config: Values<typeof opsGatewaysSettings>, print: PrintLine): Promise<void> {
  const { reachesNats, gateways } = answerAs(Fleet, await ask(config, "/fleet"));
  for (const { gateway, state, connections, rooms, shedLevel } of gateways)
    print(
      [gateway, state, `connections=${connections}`, `rooms=${rooms}`, ...(shedLevel === 0 ? [] : [`shedLevel=${shedLevel}`])].join(" "),
    );
  if (!reachesNats) print(UNREACHED);
}

/** Lists processes by role, so that an operator sees which ones an upgrade has not replaced yet. */
export async function listProcesses(config: Values<typeof opsProcessesSettings>, print: PrintLine): Promise<void> {
  const { reachesNats, processes } = answerAs(Fleet, await ask(config, "/fleet"));
  if (processes === undefined)
    throw new SettingError("the release of this gateway lists no processes. Set --url to a gateway of a newer release");
  for (const { instance, role, version = "unknown", busVersion = "unknown", cannotWorkWith } of processes)
    print(
      `${instance} role=${role} version=${version} bus=${busVersion}${cannotWorkWith.length === 0 ? "" : ` cannotWorkWithBus=${cannotWorkWith.join(",")}`}`,
    );
  const versions = new Set(processes.map(({ version }) => version));
  if (versions.size > 1) print(`${versions.size} versions run together: finish the upgrade (docs/operations/upgrade.md)`);
  if (processes.some(({ cannotWorkWith }) => cannotWorkWith.length > 0))
    print("processes run that cannot work together: stop or replace the earlier ones (docs/operations/upgrade.md)");
  if (!reachesNats) print(UNREACHED);
}

function ask(access: GatewayAccess, path: string): Promise<GatewayAnswer> {
  return askGateway(new URL(`/v1/admin${path}`, gatewayFor(access)), bearerOf(access), {});
}
