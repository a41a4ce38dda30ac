/** Bytes from the server, as the frame that they are. */

import { decodeFrame } from "../../shared/wire/codec.ts";
import { type Frame, FrameType, type ServerFrame, type UnknownFrame } from "../../shared/wire/frames.ts";

/** Undefined: no frame, or none that a server may send. */
export function serverFrameOf(bytes: Uint8Array): ServerFrame | UnknownFrame | undefined {
  const frame = decodeFrame(bytes);
  return frame === undefined || frame.type === "unknown" || isServerFrame(frame) ? frame : undefined;
}

function isServerFrame(frame: Frame): frame is ServerFrame {
  return FrameType[frame.type] >= 0x80;
}
