/**
 * Splits frames into messages. A gateway holds an incomplete message outside of its own memory limits, so it accepts
 * only small messages, and a larger frame is sent in parts (WIRE54). A gateway of an earlier version announces no size
 * for frames in parts, and receives each frame as one message.
 */

import { encodeFrame } from "./codec.ts";
import type { Limits } from "./frames.ts";

/** Minimum bytes of a part, except the last one: smaller parts would cost more than they carry. */
export const PART_BYTES_MIN = 4_096;
/** The type, the mark of the last part, and the length. */
const PART_OVERHEAD_BYTES = 8;

type FrameLimits = Pick<Limits, "frameBytesMax" | "partedFrameBytesMax">;

export function wholeFrameBytesMax({ frameBytesMax, partedFrameBytesMax = 0 }: FrameLimits): number {
  return Math.max(frameBytesMax, partedFrameBytesMax);
}

/** The messages that carry an encoded frame, in order. */
export function messagesOf(frame: Uint8Array, limits: FrameLimits): readonly Uint8Array[] {
  if (frame.byteLength <= limits.frameBytesMax || limits.partedFrameBytesMax === undefined) return [frame];
  const partBytes = Math.max(PART_BYTES_MIN, limits.frameBytesMax - PART_OVERHEAD_BYTES);
  const messages: Uint8Array[] = [];
  for (let start = 0; start < frame.byteLength; start += partBytes) {
    const payload = frame.subarray(start, start + partBytes);
    messages.push(encodeFrame({ type: "part", flags: { last: start + partBytes >= frame.byteLength }, payload }));
  }
  return messages;
}
