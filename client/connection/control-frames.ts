/**
 * Queue for outgoing frames other than edits and presence. Frames leave at the rate that the server allows. A newer
 * request replaces a waiting one for the same thing, and leaving a room removes its waiting requests. Rules CTL1 to
 * CTL5.
 */

import type { Millis, RoomId } from "../../shared/ids.ts";
import type { Channel, ClientFrame } from "../../shared/wire/frames.ts";
import type { FrameSendRate } from "./client-rates.ts";

export type ControlFrame = Exclude<ClientFrame, { type: "edit" | "presence" | "hello" }>;

type WaitingFrame = { frame: ControlFrame; readonly key: string | undefined; readonly rank: number };

export class ControlFrames {
  readonly #send: (frame: ControlFrame) => void;
  #waiting: WaitingFrame[] = [];
  /** Undefined: not connected. */
  #rate: FrameSendRate | undefined;
  /** The time at which the first waiting frame may be sent. */
  #turnAt: Millis | undefined;

  constructor(send: (frame: ControlFrame) => void) {
    this.#send = send;
  }

  /** The time of the next tick. */
  get dueAt(): Millis | undefined {
    return this.#turnAt;
  }

  open(rate: FrameSendRate): void {
    this.clear();
    this.#rate = rate;
  }

  /** The connection is lost, and its waiting frames with it. */
  clear(): void {
    this.#waiting = [];
    this.#rate = this.#turnAt = undefined;
  }

  send(frame: ControlFrame, now: Millis): void {
    if (this.#rate === undefined) return;
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
    while (this.#rate !== undefined && this.#waiting.length > 0) {
      this.#turnAt ??= this.#rate.takeTurn(now);
      if (now < this.#turnAt) return;
      this.#turnAt = undefined;
      this.#send(this.#waiting.shift()!.frame);
    }
  }

  /** Whether the room's JOIN still waits in the queue. */
  hasJoin(room: RoomId): boolean {
    return this.#waiting.some(({ frame }) => frame.type === "join" && frame.room === room);
  }

  withdrawJoin(room: RoomId): void {
    this.#withdraw((frame) => frame.type === "join" && frame.room === room);
  }

  /** The room was left, so the server no longer knows the channel. */
  withdrawFrom(channel: Channel): void {
    this.#withdraw((frame) => "channel" in frame && frame.channel === channel);
  }

  #withdraw(isMeant: (frame: ControlFrame) => boolean): void {
    this.#waiting = this.#waiting.filter(({ frame }) => !isMeant(frame));
    if (this.#waiting.length > 0 || this.#turnAt === undefined) return;
    this.#turnAt = undefined;
    this.#rate?.giveBack();
  }
}

/** Frames with the same key replace each other: only the newest counts. */
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

/** Sending order: frames that keep the connection alive first, resubmitted edits of other clients last. */
function rankOf({ type }: ControlFrame): number {
  if (type === "ping" || type === "renew") return 0;
  return type === "resubmit" ? 2 : 1;
}
