/** What a decision is made from: the servers that are heard, who has which room, and what operators want. */

import type { RoomKey, ServerId } from "../shared/ids.ts";

/** A room server that is heard. `pool`: empty for the general one. `used`: the share of its budget that is in use, by what is scarcest. */
export type ServerState = {
  readonly server: ServerId;
  readonly host: string;
  readonly zone: string;
  readonly pool: string;
  readonly draining: boolean;
  readonly used: number;
};

/** As the rooms bucket has it. */
export type RoomState = { readonly owner: ServerId };

/** Where an operator wants a room: on servers of a pool, or on a host. */
export type Pin = { readonly pool?: string | undefined; readonly host?: string | undefined };

/** As it is heard of. */
export type Observed = {
  readonly servers: readonly ServerState[];
  readonly rooms: ReadonlyMap<RoomKey, RoomState>;
  readonly pins: ReadonlyMap<RoomKey, Pin>;
  /** Rooms that take a large share of their server's budget. */
  readonly shares: ReadonlyMap<RoomKey, number>;
};

/** `cooled`: rooms on servers of the pool `dedicated` that have not been too hot for others for a while. */
export type World = Observed & { readonly cooled: ReadonlySet<RoomKey> };

/** Servers of this pool take rooms that are too hot for others. */
export const DEDICATED = "dedicated";
