/** JSON for rare messages and entries, validated by a schema. */

import type { z } from "zod";

import { parseJson } from "../parse-json.ts";

/** An entry that exists and does not decode. A retry helps only after an operator repaired it, so no caller waits for it. */
export class UndecodableEntry extends Error {
  override readonly name = "Undecodable";
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeJson(message: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(message));
}

/** Undefined for other bytes. */
export function decodeJson<Message>(schema: z.ZodType<Message>, bytes: Uint8Array): Message | undefined {
  return schema.safeParse(parseJson(decoder.decode(bytes))).data;
}
