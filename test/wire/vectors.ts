/**
 * Reads vectors.json as bytes and frames: `payload`, `mac` and `value` are hex there, and everything else is as in
 * frames.ts.
 */

import type { Frame, UnknownFrame } from "../../shared/wire/frames.ts";

const BYTES = new Set(["payload", "mac", "value"]);

export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(" ", ""), "hex"));
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

export function frameOf(json: object): Frame | UnknownFrame {
  return JSON.parse(JSON.stringify(json), (name, value: unknown) => (BYTES.has(name) ? bytesOf(value as string) : value)) as
    Frame | UnknownFrame;
}
