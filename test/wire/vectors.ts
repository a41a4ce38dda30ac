/** What vectors.json says, as bytes and frames: `payload` and `mac` are hex there, and everything else is as in frames.ts. */

import type { Frame, UnknownFrame } from "../../shared/wire/frames.ts";

export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(" ", ""), "hex"));
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

export function frameOf(json: object): Frame | UnknownFrame {
  return JSON.parse(JSON.stringify(json), (name, value: unknown) => (name === "payload" || name === "mac" ? bytesOf(value as string) : value)) as Frame | UnknownFrame;
}
