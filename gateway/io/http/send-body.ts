/**
 * Sends a long body to a client that may read slowly, without copying the unsent part. uWebSockets.js closes a socket
 * that reads nothing for ten seconds, which a full send buffer on a slow connection can cause. So the rest is offered
 * again every few seconds. The client is closed only after it has read nothing for much longer.
 */

import type { HttpResponse } from "uWebSockets.js-glibc-2.36";

export type SendOptions = { readonly answerStallMsMax: number; readonly onStalled: () => void };

const NUDGE_MS = 4_000;

// uWebSockets.js applies an `onWritable` call after the handler returns. A handler that is set within that call is
// lost.

/** Sends the whole body, with its head in the same write. */
export function sendWhole(
  res: HttpResponse,
  body: Uint8Array,
  writeHead: () => void,
  signal: AbortSignal,
  options: SendOptions,
): Promise<boolean> {
  return new Promise((resolve) => {
    res.cork(() => {
      writeHead();
      resolve(sendPart(res, body, { start: 0, total: body.byteLength }, signal, options));
    });
  });
}

/** Sends a body that arrives in parts. */
export async function sendParts(
  res: HttpResponse,
  parts: AsyncIterable<Uint8Array>,
  total: number,
  signal: AbortSignal,
  options: SendOptions,
): Promise<void> {
  let start = 0;
  for await (const part of parts) {
    if (!(await sendPart(res, part, { start, total }, signal, options))) return;
    start += part.byteLength;
  }
  if (start < total) throw new Error("an answer broke off"); // The head announced the length.
}

/**
 * Sends a body of unknown length in parts. For short bodies only: uWebSockets.js copies what the client has not read.
 */
export async function sendUnsized(res: HttpResponse, parts: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  for await (const part of parts) {
    if (signal.aborted) return;
    let isTaken = true;
    res.cork(() => void (isTaken = res.write(part)));
    if (!isTaken) await writable(res, signal);
  }
  if (!signal.aborted) res.cork(() => res.end());
}

/**
 * `part` is the piece from `start` of a body of `total` bytes. Resolves to true when the client has all of it, to false
 * when the client has disconnected or was closed.
 */
function sendPart(
  res: HttpResponse,
  part: Uint8Array,
  { start, total }: { start: number; total: number },
  signal: AbortSignal,
  options: SendOptions,
): Promise<boolean> {
  return new Promise((resolve) => {
    let stalledMs = 0;
    let nudging: NodeJS.Timeout | undefined;
    const end = (isTaken: boolean): void => {
      clearInterval(nudging);
      signal.removeEventListener("abort", gone);
      resolve(isTaken);
    };
    const gone = (): void => end(false);
    const offer = (): boolean => {
      const before = res.getWriteOffset();
      let [isTaken, isDone] = [false, false];
      res.cork(() => ([isTaken, isDone] = res.tryEnd(part.subarray(before - start), total)));
      if (isTaken || isDone) clearInterval(nudging);
      else if (res.getWriteOffset() > before) stalledMs = 0;
      return isTaken || isDone;
    };
    const nudge = (): void => {
      stalledMs += NUDGE_MS;
      if (offer()) return end(true);
      if (stalledMs < options.answerStallMsMax) return;
      options.onStalled();
      res.close(); // Aborts the signal.
    };
    if (signal.aborted) return gone();
    if (offer()) return end(true); // Nearly always true, so that no timer and no handler is needed.
    nudging = setInterval(nudge, NUDGE_MS);
    signal.addEventListener("abort", gone);
    let isTaken = false;
    res.onWritable(() => {
      if (!isTaken && (isTaken = offer())) setImmediate(end, true);
      return isTaken;
    });
  });
}

function writable(res: HttpResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    res.onWritable(() => {
      setImmediate(resolve);
      return true;
    });
  });
}
