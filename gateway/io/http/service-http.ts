/**
 * Calls services of other tiers over a few connections that stay open. Under load, `fetch` would open a connection per
 * call, which costs several times as much. A client may read a long answer slowly. So a call is aborted only when this
 * side waits for bytes and the service sends none.
 */

import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { Agent as TlsAgent, request as requestOverTls } from "node:https";

import type { TenantId } from "../../../shared/ids.ts";
import { isErrno } from "../../../shared/io/system-error.ts";
import { TenantTurns } from "../../limits/tenant-turns.ts";

/** `tenant`: the one that the call is for. Tenants share the connections. */
export type ServiceCall = {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tenant: TenantId;
  readonly body?: Uint8Array;
};
/**
 * Resolves when the answer begins. Undefined: no answer in time, the client disconnected, or the service has another
 * secret than this gateway. An unread answer keeps its connection.
 */
export type CallService = (url: URL, question: ServiceCall, signal: AbortSignal | undefined) => Promise<IncomingMessage | undefined>;

/**
 * Number of connections to each service for answers that are read immediately. Further calls wait, and time out like
 * unanswered calls.
 */
const SOCKETS_MAX = 64;
/** Services close a connection that is idle for 5 s, so this side closes it earlier. */
const IDLE_MS_MAX = 2_000;
/** The longest wait for the start of an answer, or for its next bytes. */
const SILENCE_MS_MAX = 15_000;
/** Interval between two checks of that wait. Short, so that a reader that has just read everything does not count as waiting for long. */
const LOOKS = 5;

/** Errors of a service that has ended or is unreachable. Any other error of a service over TLS is caused by its certificate. */
const GONE = ["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN", "ABORT_ERR"];

export type ServiceHttpOptions = {
  readonly silenceMsMax?: number;
  /** Maximum number of answers to slow readers at once, in addition to answers that are read immediately. */
  readonly streamsMax?: number;
  /** PEM certificates that sign the services' certificates. Undefined: the authorities that Node trusts. */
  readonly ca?: string | undefined;
  /** Called for each call that has to wait for a connection. */
  readonly onWait?: () => void;
  /** Called for each call that failed because TLS failed. */
  readonly onTlsFailure?: (url: URL, cause: Error) => void;
  /** Called for each call whose secret the service refused. */
  readonly onRefusedSecret?: (url: URL) => void;
};

/** A service answers so only to a request without its secret. A client would take it for a refusal of its token. */
const REFUSED_SECRET = 401;

export function serviceHttp({
  silenceMsMax = SILENCE_MS_MAX,
  streamsMax = 0,
  ca,
  onWait = () => {},
  onTlsFailure = () => {},
  onRefusedSecret = () => {},
}: ServiceHttpOptions = {}): CallService {
  const connectionsMax = SOCKETS_MAX + streamsMax;
  const connections = { keepAlive: true, maxSockets: connectionsMax, timeout: IDLE_MS_MAX };
  const agent = new Agent(connections);
  const tlsAgent = new TlsAgent({ ...connections, ...(ca === undefined ? {} : { ca }) });
  const turnsByOrigin = new Map<string, TenantTurns>();
  return (url, { method, headers, tenant, body }, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) return resolve(undefined); // An aborted signal emits no event any more.
      const turns = turnsByOrigin.get(url.origin) ?? new TenantTurns(connectionsMax);
      turnsByOrigin.set(url.origin, turns);
      const isTls = url.protocol === "https:";
      let asked: ClientRequest | undefined;
      let answer: IncomingMessage | undefined;
      let [hasTurn, isOver] = [false, false];
      let [silentMs, bytesBefore] = [0, 0];
      /** The call has left its connection, or waits for none any longer. */
      const end = (): void => {
        if (isOver) return;
        isOver = true;
        clearInterval(looking);
        signal?.removeEventListener("abort", abandonWait);
        if (hasTurn) turns.release(tenant);
        else turns.leave(tenant, start);
        if (turns.isIdle) turnsByOrigin.delete(url.origin);
      };
      const giveUp = (): void => {
        asked?.destroy(new Error("nothing more came of the answer"));
        end(); // While the call waits for a connection, destroying it emits no event.
        resolve(undefined);
      };
      const abandonWait = (): void => {
        if (!hasTurn) giveUp();
      };
      const look = (): void => {
        const bytes = answer?.socket.bytesRead ?? 0;
        silentMs = bytes === bytesBefore && !isReadersTurn(answer) ? silentMs + silenceMsMax / LOOKS : 0;
        bytesBefore = bytes;
        if (silentMs >= silenceMsMax) giveUp();
      };
      const send = (): ClientRequest => {
        const length = body === undefined ? {} : { "content-length": String(body.byteLength) };
        const question = { method, headers: { ...headers, ...length }, ...(signal === undefined ? {} : { signal }) };
        return isTls ? requestOverTls(url, { ...question, agent: tlsAgent }) : request(url, { ...question, agent });
      };
      const start = (): void => {
        hasTurn = true;
        try {
          asked = send();
        } catch (cause) {
          end(); // A header has characters that HTTP does not allow.
          return reject(cause as Error);
        }
        asked.on("close", end);
        asked.on("error", (cause) => {
          if (isTls && answer === undefined && "code" in cause && !isErrno(cause, ...GONE)) onTlsFailure(url, cause);
          resolve(undefined); // After the answer has begun, its reader gets the error.
        });
        asked.on("response", (begun) => {
          if (begun.statusCode !== REFUSED_SECRET) return resolve((answer = begun));
          begun.resume(); // The connection becomes free.
          onRefusedSecret(url);
          resolve(undefined);
        });
        asked.end(body);
      };
      const looking = setInterval(look, silenceMsMax / LOOKS);
      signal?.addEventListener("abort", abandonWait);
      turns.take(tenant, start);
      if (!hasTurn) onWait();
    });
}

/** Whether bytes wait here for the reader, or the answer is complete. */
function isReadersTurn(answer: IncomingMessage | undefined): boolean {
  return answer !== undefined && (answer.complete || answer.readableLength > 0);
}
