/** What a probe of a room needs from the world, in its own words. `participant-host.ts` is it with the SDK; tests fake it. */

import type { ClientId, Seq } from "../shared/ids.ts";
import type { Point } from "../shared/wire/positions.ts";

/** One ordinary client in one room, which comes back by itself. */
export interface Participant {
  /** Undefined before its first join. */
  readonly client: ClientId | undefined;
  /** Edits that are not acknowledged. */
  readonly unsavedEdits: number;
  send(payload: Uint8Array): void;
  pointAt(point: Point): void;
  /** Its line breaks, as if the network did it. */
  cut(): void;
  /** Where it was refused for good, it tries again all the same. */
  comeBack(): void;
  leave(): void;
}

export interface ParticipantListener {
  /** It is in the room, and has all of it up to when it came. */
  came(): void;
  went(): void;
  /** In the room's order, without a hole, its own among them once they are acknowledged. */
  delivered(edits: readonly { readonly seq: Seq; readonly payload: Uint8Array }[]): void;
  snapshot(seq: Seq): void;
  rolledBack(): void;
  /** Another of the room points there. */
  pointed(client: ClientId, point: Point): void;
}

/** `seesPresence`: else it takes none in. */
export type EnterRoom = (
  room: string,
  participant: { readonly index: number; readonly seesPresence: boolean },
  listener: ParticipantListener,
) => Participant;
