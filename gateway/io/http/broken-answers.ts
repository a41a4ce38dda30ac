/** Answers of services that break off before their end, because the service ended or sent nothing more. Clients may ask again. */

class BrokenAnswer extends Error {
  override readonly name = "BrokenAnswer";
}

/** Throws `BrokenAnswer` if the body breaks off, or has fewer than `bytes` bytes. */
export async function* piecesOf(body: AsyncIterable<Uint8Array>, bytes = 0): AsyncGenerator<Uint8Array> {
  let received = 0;
  try {
    for await (const piece of body) {
      received += piece.byteLength;
      yield piece;
    }
  } catch (cause) {
    throw new BrokenAnswer("an answer broke off", { cause }); // The stream of an answer fails only when its connection fails.
  }
  if (received < bytes) throw new BrokenAnswer("an answer broke off");
}

/** Undefined: an answer broke off, as if no service had answered. */
export async function unlessBroken<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof BrokenAnswer) return undefined;
    throw error;
  }
}
