/**
 * Fetches a room's snapshot over HTTP from the gateway's address. The download is aborted after a time without data,
 * even a long download is not.
 */

import { joinBytes } from "../../shared/collections/bytes.ts";
import { type Epoch, parseClientId, type Position, type Seq } from "../../shared/ids.ts";
import type { EditName } from "../persistence/edit-store.ts";
import type { SnapshotAnswer } from "../ports.ts";

/** Maximum wait for the response headers, and between two parts of the body. */
const SILENCE_MS_MAX = 30_000;

export async function fetchSnapshot(
  url: string,
  token: string,
  signal: AbortSignal,
  silenceMsMax = SILENCE_MS_MAX,
): Promise<SnapshotAnswer> {
  const controller = new AbortController();
  const end = (): void => controller.abort(signal.reason);
  const abortSilent = (): void => controller.abort(new Error(`no data arrived for ${silenceMsMax} ms`));
  let waiting = setTimeout(abortSilent, silenceMsMax);
  const restartTimer = (): void => {
    clearTimeout(waiting);
    waiting = setTimeout(abortSilent, silenceMsMax);
  };
  signal.addEventListener("abort", end);
  try {
    if (signal.aborted) end();
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal: controller.signal });
    if (answer.status === 404) return { kind: "none" };
    if (answer.status === 410) return { kind: "deleted" };
    if (!answer.ok) {
      return { kind: "unavailable", retryAfterMs: retryAfterMsOf(answer.headers.get("retry-after")), why: `HTTP ${answer.status}` };
    }
    const position = positionOf(answer.headers);
    if (position === undefined) {
      return {
        kind: "unavailable",
        retryAfterMs: 0,
        why: "the answer has no position (headers x-coroom-epoch, x-coroom-seq): a proxy may have dropped them",
      };
    }
    restartTimer();
    const last = editNamed(answer.headers.get("x-coroom-last-edit"));
    if (answer.body) return { kind: "snapshot", position, last, payload: await bodyOf(answer.body, restartTimer) };
    clearTimeout(waiting); // React Native has no streams, so it does not report when data arrives.
    return { kind: "snapshot", position, last, payload: new Uint8Array(await answer.arrayBuffer()) };
  } finally {
    clearTimeout(waiting);
    signal.removeEventListener("abort", end);
    controller.abort(); // An unread body would keep its connection open.
  }
}

async function bodyOf(body: ReadableStream<Uint8Array>, restartTimer: () => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = body.getReader(); // Not every browser can iterate over the body with `for await`.
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    restartTimer();
    chunks.push(read.value);
    bytes += read.value.byteLength;
  }
  return joinBytes(chunks, bytes);
}

function positionOf(headers: Headers): Position | undefined {
  const epoch = numberOf(headers.get("x-coroom-epoch"));
  const seq = numberOf(headers.get("x-coroom-seq"));
  return epoch === undefined || seq === undefined ? undefined : { epoch: epoch as Epoch, seq: seq as Seq };
}

/** Undefined also if the server does not send it. */
function editNamed(text: string | null): EditName | undefined {
  const [client, counter] = text?.split(".") ?? [];
  const [by, counted] = [parseClientId(client ?? ""), numberOf(counter ?? null)];
  return by === undefined || counted === undefined ? undefined : { client: by, counter: counted };
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Milliseconds after which the server accepts another request. 0: not given, or not in seconds. */
export function retryAfterMsOf(header: string | null | undefined): number {
  return /^\d{1,9}$/.test(header ?? "") ? Number(header) * 1000 : 0;
}
