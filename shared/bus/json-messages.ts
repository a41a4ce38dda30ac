/** What is said or stored rarely, as JSON that a schema reads. */

import type { z } from "zod";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeJson(message: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(message));
}

/** Undefined for bytes that are not such a message. */
export function decodeJson<Message>(schema: z.ZodType<Message>, bytes: Uint8Array): Message | undefined {
  try {
    return schema.safeParse(JSON.parse(decoder.decode(bytes))).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
