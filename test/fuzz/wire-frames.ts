/** Frames of the client protocol, in both directions. */

import { assert } from "../../shared/assert.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import vectors from "../../shared/wire/vectors.json" with { type: "json" };
import { bytesOf } from "../wire/vectors.ts";
import { amongOthers, assertEqual, heldSize } from "./held.ts";

export function seeds(): Uint8Array[] {
  return vectors.map(({ hex }) => bytesOf(hex));
}

const TO_CLIENT = 0x80;

/**
 * A frame of a client has exactly one encoding, except for the flags of PART. A gateway's frame may have flags and
 * fields of later versions, which are ignored.
 */
export function fuzz(input: Uint8Array): boolean {
  const bytes = amongOthers(input);
  const frame = decodeFrame(bytes);
  if (frame === undefined || frame.type === "unknown") return false;
  assert(heldSize(frame, bytes) <= bytes.byteLength, "a frame holds no more than its bytes");
  const again = encodeFrame(frame);
  assertEqual(decodeFrame(again), frame, "a frame decodes to what was encoded");
  if (bytes[0]! < TO_CLIENT && frame.type !== "part")
    assertEqual(again, bytes.slice(0, again.byteLength), "a client's frame has one encoding");
  return true;
}
