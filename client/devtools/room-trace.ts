/**
 * What the developer panel shows of a room's frames: counts for each lane, and the last frames as texts. Bounded, and
 * without payloads. Deterministic. Rules DEV1, DEV2.
 */

import type { Millis } from "../../shared/ids.ts";
import type { ClientFrame } from "../../shared/wire/frames.ts";
import type { RoomFrame, RoomSessionInput } from "../room/room-messages.ts";

/** The lanes of a connection, and the frames that belong to neither. */
export type TracedLane = "edits" | "presence" | "control";

type TracedFrame = { readonly at: Millis; readonly direction: "in" | "out"; readonly text: string };

type LaneCounts = { in: number; out: number };

const FRAMES_MAX = 50;

export class RoomTrace {
  readonly counts: Readonly<Record<TracedLane, LaneCounts>> = {
    edits: { in: 0, out: 0 },
    presence: { in: 0, out: 0 },
    control: { in: 0, out: 0 },
  };
  readonly #frames: TracedFrame[] = [];

  /** The newest last. */
  get frames(): readonly TracedFrame[] {
    return this.#frames;
  }

  receiveInput(input: RoomSessionInput, now: Millis): void {
    if (input.kind === "frame") this.#add("in", input.frame, now);
    else if (input.kind === "connection-open" || input.kind === "connection-lost") this.#note("in", input.kind.replace("-", " "), now);
  }

  receiveSent(frame: ClientFrame, now: Millis): void {
    this.#add("out", frame, now);
  }

  #add(direction: TracedFrame["direction"], frame: ClientFrame | RoomFrame, now: Millis): void {
    this.counts[laneOf(frame)][direction] += 1;
    this.#note(direction, textOf(frame), now);
  }

  #note(direction: TracedFrame["direction"], text: string, at: Millis): void {
    this.#frames.push({ at, direction, text });
    if (this.#frames.length > FRAMES_MAX) this.#frames.shift();
  }
}

function laneOf({ type }: ClientFrame | RoomFrame): TracedLane {
  switch (type) {
    case "edit":
    case "resubmit":
    case "committed":
    case "ack":
    case "acked-through":
    case "nack":
    case "tentative":
      return "edits";
    case "presence":
    case "presence-delta":
    case "presence-again":
      return "presence";
    default:
      return "control";
  }
}

function textOf(frame: ClientFrame | RoomFrame): string {
  switch (frame.type) {
    case "edit":
      return `edit ${frame.counter}, ${frame.payload.byteLength} B`;
    case "committed": {
      const { firstSeq, edits } = frame.edits;
      return `committed ${firstSeq}${edits.length === 1 ? "" : `–${firstSeq + edits.length - 1}`}`;
    }
    case "ack":
      return `ack of edit ${frame.counter}${frame.count === 1 ? "" : `–${frame.counter + frame.count - 1}`}: seq ${frame.seq}`;
    case "acked-through":
      return `acked through edit ${frame.counter}`;
    case "nack":
      return `nack of edit ${frame.counter}: ${frame.reason}`;
    case "joined":
      return `joined at head ${frame.head}`;
    case "join-refused":
      return `join refused: ${frame.reason}`;
    case "replay-request":
      return `replay request ${frame.after + 1}–${frame.through}`;
    case "resync-required":
      return `resync required: ${frame.reason}`;
    case "left":
      return `left: ${frame.reason}`;
    case "saving":
      return `log: ${frame.state}`;
    case "mode":
      return `mode ${frame.mode}`;
    case "presence":
      return `presence ${frame.fields.map(({ name }) => name).join(", ")}`;
    case "presence-delta": {
      const { snapshot, present, gone, states } = frame.delta;
      return `presence ${snapshot ? "snapshot" : "delta"}: ${present.length} in, ${gone.length} gone, ${states.length} moved`;
    }
    default:
      return frame.type.replaceAll("-", " ");
  }
}
