/** Fetches JSON over HTTP with a token, from the gateway's address. The caller has its own copy, so the platform stores none. */

import type { FetchJson } from "../ports.ts";
import { retryAfterMsOf } from "./fetch-snapshot.ts";

const ANSWER_MS_MAX = 30_000;

export const fetchJson: FetchJson = async (url, token, etag = "") => {
  const headers = { authorization: `Bearer ${token}`, ...(etag === "" ? {} : { "if-none-match": etag }) };
  const answer = await fetch(url, { headers, cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  const maxAge = /(?:^|[ ,])max-age=(\d{1,9})/.exec(answer.headers.get("cache-control") ?? "")?.[1];
  return {
    status: answer.status,
    body: (await answer.json().catch(() => undefined)) as unknown,
    etag: answer.headers.get("etag") ?? undefined,
    maxAgeMs: maxAge === undefined ? undefined : Number(maxAge) * 1_000,
    retryAfterMs: retryAfterMsOf(answer.headers.get("retry-after")),
  };
};
