/** Inputs of several messages. Two bytes with the length precede each message. */

const PARTS_MAX = 8;

export function inParts(input: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let at = 0;
  while (at + 2 <= input.byteLength && parts.length < PARTS_MAX) {
    const length = input[at]! * 256 + input[at + 1]!;
    parts.push(input.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return parts;
}

export function joinedParts(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts.flatMap((part) => [Uint8Array.of(part.byteLength >> 8, part.byteLength & 255), part])));
}
