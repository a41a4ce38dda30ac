/** The ports of a probe's room. `participant-host.ts` implements them with the SDK, and tests replace them. */

import type { ClientId, Seq } from "../shared/ids.ts";
import type { Point } from "../shared/wire/positions.ts";

/** One ordinary client in one room, which reconnects by itself. */
export interface ProbeParticipant {
  /** Undefined before its first join. */
  readonly client: ClientId | undefined;
  /** Number of unacknowledged edits. */
  readonly unsavedEdits: number;
  send(payload: Uint8Array): void;
  pointAt(point: Point): void;
  /** Breaks its connection, as if the network had failed. */
  cut(): void;
  /** Tries again even after a permanent rejection. */
  comeBack(): void;
  leave(): void;
}

export interface ParticipantListener {
  /** The participant is in the room and has all edits up to the join. */
  came(): void;
  went(): void;
  /** Called in the room's order, without a gap. The participant's own edits are included once they are acknowledged. */
  delivered(edits: readonly { readonly seq: Seq; readonly payload: Uint8Array }[]): void;
  snapshot(seq: Seq): void;
  rolledBack(): void;
  /** Another participant points there. */
  pointed(client: ClientId, point: Point): void;
}

/** `seesPresence`: false if the participant ignores presence. */
export type EnterRoom = (
  room: string,
  participant: { readonly index: number; readonly seesPresence: boolean },
  listener: ParticipantListener,
) => ProbeParticipant;
