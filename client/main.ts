/**
 * The classes that applications use, wired: each is its host on the real world, and nothing else. Inheritance
 * binds that one argument, so that `new`, `instanceof` and the types are what everybody expects.
 */

import { ConnectionHost, type ConnectionHostOptions } from "./connection/connection-host.ts";
import { watchNetwork } from "./io/network-news.ts";
import { fetchSnapshot } from "./io/fetch-snapshot.ts";
import { openSocket } from "./io/node-socket.ts";
import { reportError, systemChance, systemClock } from "./io/system.ts";
import type { World } from "./ports.ts";
import type { RoomHostOptions } from "./room/room-events.ts";
import { RoomHost } from "./room/room-host.ts";
import { type ProviderOptions, YjsProvider } from "./yjs/yjs-provider.ts";

const world: World = { clock: systemClock, chance: systemChance, openSocket, fetchSnapshot, watchNetwork, reportError };

/** One socket, for several rooms that one token opens. */
export class CoroomConnection extends ConnectionHost {
  constructor(options: ConnectionHostOptions) {
    super(options, world);
  }
}

/** One room, for payloads of any kind. */
export class RoomConnection extends RoomHost {
  constructor(options: RoomHostOptions) {
    super(options, world);
  }
}

/** One room, kept the same as a Yjs document. */
export class CoroomProvider extends YjsProvider {
  constructor(options: ProviderOptions) {
    super(options, world);
  }
}
