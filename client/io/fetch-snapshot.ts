/** A room's snapshot over HTTP, from the gateway's own address. */

import type { Epoch, Position, Seq } from "../../shared/ids.ts";
import type { FetchSnapshot } from "../ports.ts";

const TIMEOUT_MS = 30_000;

export const fetchSnapshot: FetchSnapshot = async (url, token) => {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (answer.status === 404) return { kind: "none" };
  if (!answer.ok) return { kind: "unavailable", retryAfterMs: secondsOf(answer.headers.get("retry-after")) * 1000, why: `HTTP ${answer.status}` };
  const position = positionOf(answer.headers);
  if (position === undefined) return { kind: "unavailable", retryAfterMs: 0, why: "the answer does not say its position (x-coroom-epoch, x-coroom-seq): a proxy may drop these headers" };
  return { kind: "snapshot", position, payload: new Uint8Array(await answer.arrayBuffer()) };
};

function positionOf(headers: Headers): Position | undefined {
  const epoch = numberOf(headers.get("x-coroom-epoch"));
  const seq = numberOf(headers.get("x-coroom-seq"));
  return epoch === undefined || seq === undefined ? undefined : { epoch: epoch as Epoch, seq: seq as Seq };
}

function secondsOf(text: string | null): number {
  return numberOf(text) ?? 0;
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
