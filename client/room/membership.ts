/**
 * Where a client stands with one room: not in it, refused, without a line, waiting to ask again, asking, in it. A room
 * joined before holds until the new JOINED: what it gave goes on meaning something while the room is asked for anew.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, Seq } from "../../shared/ids.ts";
import type { Channel } from "../../shared/wire/frames.ts";
import type { Line } from "./room-messages.ts";

/** What a join gave. */
export type Joined = { readonly channel: Channel; readonly head: Seq };

type State =
  | { readonly kind: "out" }
  | { readonly kind: "refused" }
  | { readonly kind: "offline" }
  | { readonly kind: "waiting"; readonly line: Line; readonly until: Millis }
  | { readonly kind: "joining"; readonly line: Line; readonly until: Millis; readonly before: Joined | undefined }
  | { readonly kind: "live"; readonly line: Line; readonly joined: Joined };

export type RoomStatus = "disconnected" | "stopped" | "connecting" | "connected";

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
      case "waiting":
        return "connecting";
      case "joining":
        return this.#state.before === undefined ? "connecting" : "connected";
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
    return this.#state.kind === "waiting" || this.#state.kind === "joining" ? this.#state.until : undefined;
  }

  /** Also after a refusal. */
  enter(): void {
    if (this.#state.kind === "out" || this.#state.kind === "refused") this.#state = { kind: "offline" };
  }

  ask(line: Line, before: Joined | undefined, until: Millis): void {
    this.#state = { kind: "joining", line, before, until };
  }

  /** False: nobody had asked. */
  receiveJoined(joined: Joined): boolean {
    if (this.#state.kind !== "joining") return false;
    this.#state = { kind: "live", line: this.#state.line, joined };
    this.#heldChannel = joined.channel;
    return true;
  }

  /** Turned away for now. */
  wait(line: Line, until: Millis): void {
    this.#state = { kind: "waiting", line, until };
  }

  /** `offline`: to be joined again. */
  end(kind: "out" | "refused" | "offline"): void {
    this.#state = { kind };
    this.#heldChannel = undefined;
  }
}
