/**
 * Frames that are neither edits nor presence, on their way out of one connection: as fast as the server takes them, the
 * others wait. What is overtaken while it waits is never sent: who asks again for the same has the place of the first,
 * and on a channel that is left nothing is asked any more. Rules CTL1 to CTL5.
 */

import type { Millis, RoomId } from "../../shared/ids.ts";
import type { Channel, ClientFrame } from "../../shared/wire/frames.ts";
import type { FramePace } from "./frame-pace.ts";

export type ControlFrame = Exclude<ClientFrame, { type: "edit" | "presence" | "hello" }>;

type Waiting = { frame: ControlFrame; readonly key: string | undefined; readonly rank: number };

export class ControlFrames {
  readonly #send: (frame: ControlFrame) => void;
  #waiting: Waiting[] = [];
  /** Undefined: there is no line. */
  #pace: FramePace | undefined;
  /** Of the first that waits. */
  #turnAt: Millis | undefined;

  constructor(send: (frame: ControlFrame) => void) {
    this.#send = send;
  }

  /** When a tick is next needed. */
  get dueAt(): Millis | undefined {
    return this.#turnAt;
  }

  open(pace: FramePace): void {
    this.lose();
    this.#pace = pace;
  }

  /** With the line goes what waits for it. */
  lose(): void {
    this.#waiting = [];
    this.#pace = this.#turnAt = undefined;
  }

  send(frame: ControlFrame, now: Millis): void {
    if (this.#pace === undefined) return;
    if (frame.type === "leave") this.withdrawFrom(frame.channel);
    const [key, rank] = [keyOf(frame), rankOf(frame)];
    const first = key === undefined ? undefined : this.#waiting.find((waiting) => waiting.key === key);
    if (first !== undefined) {
      first.frame = frame;
      return;
    }
    const before = this.#waiting.findIndex((waiting) => waiting.rank > rank);
    this.#waiting.splice(before === -1 ? this.#waiting.length : before, 0, { frame, key, rank });
    this.receiveTick(now);
  }

  receiveTick(now: Millis): void {
    while (this.#pace !== undefined && this.#waiting.length > 0) {
      this.#turnAt ??= this.#pace.takeTurn(now);
      if (now < this.#turnAt) return;
      this.#turnAt = undefined;
      this.#send(this.#waiting.shift()!.frame);
    }
  }

  /** Whether the room's JOIN still waits. */
  hasJoin(room: RoomId): boolean {
    return this.#waiting.some(({ frame }) => frame.type === "join" && frame.room === room);
  }

  withdrawJoin(room: RoomId): void {
    this.#withdraw((frame) => frame.type === "join" && frame.room === room);
  }

  /** The room is left, or was taken away: the server would not know what is meant. */
  withdrawFrom(channel: Channel): void {
    this.#withdraw((frame) => "channel" in frame && frame.channel === channel);
  }

  #withdraw(isMeant: (frame: ControlFrame) => boolean): void {
    this.#waiting = this.#waiting.filter(({ frame }) => !isMeant(frame));
    if (this.#waiting.length > 0 || this.#turnAt === undefined) return;
    this.#turnAt = undefined;
    this.#pace?.giveBack();
  }
}

/** The same for frames of which the newer makes the older void. */
function keyOf(frame: ControlFrame): string | undefined {
  switch (frame.type) {
    case "join":
      return `join ${frame.room}`;
    case "replay-request":
      return `replay ${frame.channel}`;
    case "watch-board":
      return `board ${frame.channel} ${frame.role} ${frame.window}`;
    case "resubmit":
      return `resubmit ${frame.channel} ${frame.edit.client} ${frame.edit.counter}`;
    case "ping":
    case "renew":
      return frame.type;
    case "leave":
      return undefined;
  }
}

/** What holds the line up goes first, what others have typed and may come from somebody else last. */
function rankOf({ type }: ControlFrame): number {
  if (type === "ping" || type === "renew") return 0;
  return type === "resubmit" ? 2 : 1;
}
