/**
 * A long body to somebody who may take it slowly: what is not taken yet is not copied for it. uWebSockets.js gives up a
 * socket that took nothing for ten seconds, which a full send buffer on a slow line easily does; so each is offered the
 * rest again every few seconds, and given up only when it has taken nothing for much longer.
 */

import type { HttpResponse } from "uws-node20";

export type SendOptions = { readonly answerStallMsMax: number; readonly onStalled: () => void };

const NUDGE_MS = 4_000;

// What `onWritable` is called for is settled after that call: a handler that is set within it, for what comes next, is lost.

/** `part`: of a body of `total` bytes, from `start` on. Resolves once all of it is taken; false: the client has gone, or was given up. */
export function sendPart(
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
    if (offer()) return end(true); // Nearly always, and nothing need be set up for it.
    nudging = setInterval(nudge, NUDGE_MS);
    signal.addEventListener("abort", gone);
    let isTaken = false;
    res.onWritable(() => {
      if (!isTaken && (isTaken = offer())) setImmediate(end, true);
      return isTaken;
    });
  });
}

/** All of it at once, its head in the same write. */
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

/** A body that comes in parts. */
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
  if (start < total) throw new Error("an answer broke off"); // Its head said how long it is.
}

/** A body that comes in parts, and does not say how long it is: short ones only, for what is not taken is copied. */
export async function sendUnsized(res: HttpResponse, parts: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  for await (const part of parts) {
    if (signal.aborted) return;
    let isTaken = true;
    res.cork(() => void (isTaken = res.write(part)));
    if (!isTaken) await writable(res, signal);
  }
  if (!signal.aborted) res.cork(() => res.end());
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
