/** A gateway's rooms without sockets, placement and presence, for tests that watch some of their ports. */

import { Registry } from "prom-client";

import type { GatewayId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { gatewaySettings } from "../config.ts";
import { Quotas } from "../limits/quotas.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { EditHops, RoomOwners, Sockets } from "../ports.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";
import { RoomDirectory } from "../rooms/room-directory.ts";
import { FollowedRoomsHost } from "../rooms/room-host.ts";
import { UnackedBudget } from "../rooms/unacked-budget.ts";
import { WritesHost } from "../rooms/writes-host.ts";
import { quotaOptions } from "../settings/quotas.ts";
import { UsageMeter } from "../usage/usage-meter.ts";

type Watched = {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly hops?: EditHops;
  readonly send?: Sockets["send"];
  readonly sendToOwner?: RoomOwners["sendToOwner"];
};

/** `flags`: settings that differ from their defaults. `endTurn` ends a turn of the event loop. */
export function followedRooms(flags: Readonly<Record<string, string>> = {}, watched: Watched = {}) {
  const { clock = new FakeClock(), log = SILENT_LOG, hops, send = () => {}, sendToOwner = () => {} } = watched;
  const turns: (() => void)[] = [];
  const registry = new Registry();
  const deps = { clock, log, hops, endOfTurn: (run: () => void) => void turns.push(run), metrics: gatewayMetrics(registry) };
  const config = readSettings(gatewaySettings, { flags, env: {} });
  const usage = new UsageMeter({ tenantsMax: 10 });
  const budget = new UnackedBudget({ bytesMax: config.forwardedBytesMax });
  const quotas = new Quotas(quotaOptions(config));
  const rooms = new FollowedRoomsHost(
    {
      sockets: { send, publish: () => 0, listen: () => {}, unlisten: () => {}, whenRead: () => {}, close: () => {} },
      rooms: { follow: () => Promise.resolve(), unfollow: () => {}, sendToOwner },
      placement: { onServerLost: () => {} } as never,
      sessions: new Map(),
      presence: { receiveOwner: () => {}, isFullFor: () => false } as unknown as PresenceRelayHost,
      writes: new WritesHost(config, () => {}, { ...deps, usage }),
      quotas,
      usage,
      dispatch: () => {},
    },
    new RoomDirectory({ ...config, gateway: "g1" as GatewayId }, budget),
    budget,
    { ...config, searchesMax: 1 },
    deps,
  );
  return { rooms, quotas, registry, endTurn: () => turns.splice(0).forEach((run) => run()) };
}
