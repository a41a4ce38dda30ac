/**
 * Where a client stands with one room: not in it, refused, without a line, waiting to ask again, asking, in it. A room
 * joined before holds until the new JOINED: what it gave goes on meaning something while the room is asked for anew.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, Seq } from "../../shared/ids.ts";
import type { Channel, JoinRefusal } from "../../shared/wire/frames.ts";
import type { Line } from "./room-messages.ts";

/** Why the room is not joined, and when it is asked for again. */
export type PutOff = { readonly reason: JoinRefusal; readonly message: string; readonly until: Millis };

/** What a join gave. */
export type Joined = { readonly channel: Channel; readonly head: Seq };

type State =
  | { readonly kind: "out" }
  | { readonly kind: "refused" }
  | { readonly kind: "offline" }
  | { readonly kind: "waiting"; readonly line: Line; readonly putOff: PutOff }
  | {
      readonly kind: "joining";
      readonly line: Line;
      readonly until: Millis;
      readonly before: Joined | undefined;
      /** By the answer to the request before this one. */
      readonly putOff: PutOff | undefined;
    }
  | { readonly kind: "live"; readonly line: Line; readonly joined: Joined };

/** waiting: turned away for now. */
export type RoomStatus = "disconnected" | "stopped" | "connecting" | "waiting" | "connected";

export class Membership {
  #state: State = { kind: "out" };
  #heldChannel: Channel | undefined;

  get status(): RoomStatus {
    switch (this.#state.kind) {
      case "out":
        return "disconnected";
      case "refused":
        return "stopped";
      case "offline":
        return "connecting";
      case "waiting":
        return "waiting";
      case "joining":
        if (this.#state.before !== undefined) return "connected";
        return this.#state.putOff === undefined ? "connecting" : "waiting";
      case "live":
        return "connected";
      default:
        return assertNever(this.#state);
    }
  }

  /** The line that the room is asked for, or joined, over. */
  get line(): Line | undefined {
    return "line" in this.#state ? this.#state.line : undefined;
  }

  /** It is to be joined as soon as there is a line. */
  get needsLine(): boolean {
    return this.#state.kind === "offline";
  }

  get isJoining(): boolean {
    return this.#state.kind === "joining";
  }

  /** In the room, and not asking for it anew. */
  get live(): { readonly line: Line; readonly joined: Joined } | undefined {
    return this.#state.kind === "live" ? this.#state : undefined;
  }

  /** What the last join gave, for as long as it holds. */
  get joined(): Joined | undefined {
    if (this.#state.kind === "joining") return this.#state.before;
    return this.#state.kind === "live" ? this.#state.joined : undefined;
  }

  /** Under which the server has the client in the room: also while it turns away who asks for it anew. */
  get heldChannel(): Channel | undefined {
    return this.#heldChannel;
  }

  /** When the room is to be asked for again. */
  get askAgainAt(): Millis | undefined {
    if (this.#state.kind === "waiting") return this.#state.putOff.until;
    return this.#state.kind === "joining" ? this.#state.until : undefined;
  }

  /** Turned away for now: from the first such answer until the room is joined, or the line lost. */
  get putOff(): PutOff | undefined {
    return "putOff" in this.#state ? this.#state.putOff : undefined;
  }

  /** Also after a refusal. */
  enter(): void {
    if (this.#state.kind === "out" || this.#state.kind === "refused") this.#state = { kind: "offline" };
  }

  ask(line: Line, before: Joined | undefined, until: Millis): void {
    this.#state = { kind: "joining", line, before, until, putOff: this.putOff };
  }

  /** False: nobody had asked. */
  receiveJoined(joined: Joined): boolean {
    if (this.#state.kind !== "joining") return false;
    this.#state = { kind: "live", line: this.#state.line, joined };
    this.#heldChannel = joined.channel;
    return true;
  }

  /** Turned away for now. */
  wait(line: Line, putOff: PutOff): void {
    this.#state = { kind: "waiting", line, putOff };
  }

  /** `offline`: to be joined again. */
  end(kind: "out" | "refused" | "offline"): void {
    this.#state = { kind };
    this.#heldChannel = undefined;
  }
}
