/**
 * A question to a service of another tier, over a few connections that are kept: when a crowd asks, `fetch` opens one
 * for each question, and costs several times as much for it. An answer may be long, and be taken slowly: it is given
 * up when the service says nothing while it is waited for.
 */

import { Agent, type IncomingMessage, request } from "node:http";

export type ServiceQuestion = { readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: Uint8Array };
/** Resolves once the answer begins. Undefined: nobody answers there, or not in time, or whoever asked has gone. What is not read of the answer holds its connection. */
export type AskService = (url: URL, question: ServiceQuestion, signal: AbortSignal | undefined) => Promise<IncomingMessage | undefined>;

/** To each service, for answers that are taken at once. Questions past it wait, and are given up like those that nobody answers. */
const SOCKETS_MAX = 64;
/** Services close a connection that is idle for 5 s: this side is to be sooner. */
const IDLE_MS_MAX = 2_000;
/** Until the answer begins, and then without any more of it. */
const SILENCE_MS_MAX = 15_000;
/** In that time, so that a reader that has just taken all there was is not mistaken for one that waits. */
const LOOKS = 5;

/** `streamsMax`: answers that may be on their way to slow readers, beside those that are taken at once. */
export function serviceHttp({
  silenceMsMax = SILENCE_MS_MAX,
  streamsMax = 0,
}: { silenceMsMax?: number; streamsMax?: number } = {}): AskService {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX + streamsMax, timeout: IDLE_MS_MAX });
  return (url, { method, headers, body }, signal) =>
    new Promise((resolve) => {
      const length = body === undefined ? {} : { "content-length": String(body.byteLength) };
      const asked = request(url, { agent, method, headers: { ...headers, ...length }, ...(signal === undefined ? {} : { signal }) });
      let answer: IncomingMessage | undefined;
      let [silentMs, bytesBefore] = [0, 0];
      const look = (): void => {
        const bytes = answer?.socket.bytesRead ?? 0;
        silentMs = bytes === bytesBefore && !isReadersTurn(answer) ? silentMs + silenceMsMax / LOOKS : 0;
        bytesBefore = bytes;
        if (silentMs < silenceMsMax) return;
        asked.destroy(new Error("nothing more came of the answer"));
        resolve(undefined); // While it waits for a connection it says nothing of its end.
      };
      const looking = setInterval(look, silenceMsMax / LOOKS);
      asked.on("close", () => clearInterval(looking));
      asked.on("error", () => resolve(undefined)); // Behind the answer's beginning its reader is told.
      asked.on("response", (begun) => resolve((answer = begun)));
      asked.end(body);
    });
}

/** Something lies here that it has not taken, or all has come. */
function isReadersTurn(answer: IncomingMessage | undefined): boolean {
  return answer !== undefined && (answer.complete || answer.readableLength > 0);
}
