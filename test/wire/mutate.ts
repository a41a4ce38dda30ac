/** Bytes that are almost valid, made from valid ones, for fuzz tests of decoders. The seed decides each mutation. */

import { Prng } from "../../shared/collections/prng.ts";

type Mutation = (prng: Prng, bytes: Uint8Array, other: Uint8Array) => Uint8Array;

/** Numbers that may break a decoder: around sign bits, 2^32 and 2^53, beyond 2^64, and without an end. */
const LIES = [
  "00",
  "7f",
  "8000",
  "8001",
  "ff7f",
  "ffffffff07",
  "8080808010",
  "8280808010",
  "ffffffffffffff0f",
  "8080808080808010",
  "ffffffffffffffffff01",
  "80".repeat(160) + "00",
  "80",
];

const MUTATIONS: readonly Mutation[] = [
  function flipBits(prng, bytes) {
    const flipped = new Uint8Array(bytes);
    for (let left = 1 + prng.below(3); left > 0; left--) flipped[prng.below(bytes.length)]! ^= 1 << prng.below(8);
    return flipped;
  },
  function setByte(prng, bytes) {
    const set = new Uint8Array(bytes);
    set[prng.below(bytes.length)] = prng.below(256);
    return set;
  },
  function insertByte(prng, bytes) {
    const at = prng.below(bytes.length + 1);
    return joined(bytes.slice(0, at), Uint8Array.of(prng.below(256)), bytes.slice(at));
  },
  function erasePart(prng, bytes) {
    const at = prng.below(bytes.length);
    return joined(bytes.slice(0, at), bytes.slice(at + 1 + prng.below(8)));
  },
  function truncate(prng, bytes) {
    return bytes.slice(0, prng.below(bytes.length + 1));
  },
  function splice(prng, bytes, other) {
    return joined(bytes.slice(0, prng.below(bytes.length + 1)), other.slice(prng.below(other.length + 1)));
  },
  function repeatPart(prng, bytes) {
    const [from, to] = [prng.below(bytes.length + 1), prng.below(bytes.length + 1)];
    return joined(bytes.slice(0, Math.max(from, to)), bytes.slice(Math.min(from, to)));
  },
  function tamperWithNumber(prng, bytes) {
    const at = prng.below(bytes.length);
    const lie = new Uint8Array(Buffer.from(LIES[prng.below(LIES.length)]!, "hex"));
    return joined(bytes.slice(0, at), lie, bytes.slice(at + prng.below(3)));
  },
];

/** One mutation of `bytes`, which may take a part of `other`. */
export function mutate(prng: Prng, bytes: Uint8Array, other: Uint8Array): Uint8Array {
  return bytes.length === 0 ? other : MUTATIONS[prng.below(MUTATIONS.length)]!(prng, bytes, other);
}

/** `runs` inputs: mutated once to three times, and sometimes random bytes behind a valid first byte. */
export function* almostRight(seed: number, right: readonly Uint8Array[], runs: number): Iterable<Uint8Array> {
  const prng = new Prng(seed);
  const any = () => right[prng.below(right.length)]!;
  for (let run = 0; run < runs; run++) {
    let bytes = any();
    if (prng.chance(0.1)) {
      yield Uint8Array.from({ length: 1 + prng.below(40) }, (_, index) => (index === 0 ? bytes[0]! : prng.below(256)));
      continue;
    }
    for (let left = 1 + prng.below(3); left > 0 && bytes.length > 0; left--) bytes = mutate(prng, bytes, any());
    yield bytes;
  }
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}
