/** Undefined for text that is not JSON. The parser's error is not passed on, because it would quote a secret in the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
