/** Fetches JSON over HTTP with a token, from the gateway's address. */

import type { FetchJson } from "../ports.ts";

const ANSWER_MS_MAX = 30_000;

export const fetchJson: FetchJson = async (url, token) => {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  return { status: answer.status, body: (await answer.json().catch(() => undefined)) as unknown };
};
