/**
 * Public classes, bound to the platform. Each combines an inner class with the real clock, random numbers, sockets and
 * network events. Subclasses keep `new`, `instanceof` and the types as users expect. Rule ROO32.
 */

import { ConnectionHost, type ConnectionOptions } from "./connection/connection-host.ts";
import { watchNetwork } from "./io/network-changes.ts";
import { fetchSnapshot } from "./io/fetch-snapshot.ts";
import { openSocket } from "./io/node-socket.ts";
import { reportError, systemChance, systemClock } from "./io/system.ts";
import { assertNotDestroyed } from "./options.ts";
import type { ClientWorld } from "./ports.ts";
import type { RoomConnectionOptions } from "./room/room-events.ts";
import { RoomConnection as RoomConnectionHost } from "./room/room-connection-host.ts";
import type { AwarenessState } from "./presence/awareness.ts";
import type { ProviderOptions } from "./yjs/provider-events.ts";
import { YjsProvider } from "./yjs/yjs-provider.ts";

const world: ClientWorld = { clock: systemClock, chance: systemChance, openSocket, fetchSnapshot, watchNetwork, reportError };

/** One connection to the server, which several rooms may share if one token is valid for all of them. */
export class CoroomConnection extends ConnectionHost {
  /** Does not connect: the first room that joins does, or `connect()`. Throws an `Error` that names a wrong option. */
  constructor(options: ConnectionOptions) {
    super(options, world);
  }
}

/** One room, for payloads of any format. Providers and bridges use its base class, which ignores their late calls. */
export class RoomConnection extends RoomConnectionHost {
  /** Joins the room unless `connect` is false. Throws an `Error` that names a wrong option. */
  constructor(options: RoomConnectionOptions) {
    super(options, world);
  }

  /** Joins the room and stays in it. After a refusal, or while it waits to reach the server, tries at once. Throws after `destroy()`. */
  override connect(): void {
    assertNotDestroyed(this.isDestroyed, "connect");
    super.connect();
  }

  /** Sends an edit as soon as possible. `payload`: a Uint8Array, not to be changed afterwards. Throws for anything else, and after `destroy()`. */
  override send(payload: Uint8Array): void {
    assertNotDestroyed(this.isDestroyed, "send an edit");
    super.send(payload);
  }
}

/** One room, synchronized with a Yjs document. `State`: fields of the awareness. */
export class CoroomProvider<State extends object = AwarenessState> extends YjsProvider<State> {
  /** Joins the room unless `connect` is false. Throws an `Error` that names a wrong option. */
  constructor(options: ProviderOptions) {
    super(options, world);
  }

  /** Joins the room and stays in it. After a refusal, or while it waits to reach the server, tries at once. Throws after `destroy()`. */
  override connect(): void {
    assertNotDestroyed(this.isDestroyed, "connect");
    super.connect();
  }
}
