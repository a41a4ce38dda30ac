/**
 * A question to a service of another tier, over a few connections that are kept: when a crowd asks, `fetch` opens one
 * for each question, and costs several times as much for it.
 */

import { Agent, type IncomingMessage, request } from "node:http";

export type ServiceQuestion = { readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: Uint8Array };
/** Resolves once the answer begins. Undefined: nobody answers there, or not in time, or whoever asked has gone. */
export type AskService = (url: URL, question: ServiceQuestion, signal: AbortSignal | undefined) => Promise<IncomingMessage | undefined>;

const SOCKETS_MAX = 64;
/** Services close a connection that is idle for 5 s: this side is to be sooner. */
const IDLE_MS_MAX = 2_000;
/** Until all of the answer is there. */
const ANSWER_MS_MAX = 15_000;

export function serviceHttp(): AskService {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX, timeout: IDLE_MS_MAX });
  return (url, { method, headers, body }, signal) =>
    new Promise((resolve) => {
      const length = body === undefined ? {} : { "content-length": String(body.byteLength) };
      const asked = request(url, { agent, method, headers: { ...headers, ...length }, ...(signal === undefined ? {} : { signal }) });
      const late = setTimeout(() => asked.destroy(new Error("the answer took too long")), ANSWER_MS_MAX);
      asked.on("close", () => clearTimeout(late));
      asked.on("error", () => resolve(undefined)); // Behind the answer's beginning its reader is told.
      asked.on("response", resolve);
      asked.end(body);
    });
}
