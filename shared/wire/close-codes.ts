/**
 * All WebSocket close codes of a gateway. The code alone determines what the client does next. A number is never
 * reused. WIRE.md has the same list, which a test compares.
 *
 * - `now`: connect again at once, to another gateway if possible.
 * - `after-backoff`: connect again after exponential backoff with jitter.
 * - `with-new-token`: ask the application for a new token, then connect again.
 * - `when-told`: connect again when the time given by RETRY_LATER is over, however long it is.
 * - `never`: stop and inform the application, because another attempt would end the same way.
 */
export const CLOSE = {
  goingAway: { code: 4001, reconnect: "now", meaning: "the gateway is draining" },
  tooSlow: { code: 4002, reconnect: "after-backoff", meaning: "the client fell too far behind; resume from the last seq" },
  degraded: { code: 4003, reconnect: "now", meaning: "the gateway lost its backbone; another may have it" },
  silent: { code: 4004, reconnect: "after-backoff", meaning: "the client sent nothing for too long" },
  overloaded: { code: 4005, reconnect: "after-backoff", meaning: "the gateway accepts no more connections now" },
  rateLimited: { code: 4006, reconnect: "after-backoff", meaning: "the client exceeded its rate limits" },
  helloTimeout: { code: 4007, reconnect: "after-backoff", meaning: "no HELLO arrived in time" },
  tenantFull: { code: 4008, reconnect: "after-backoff", meaning: "the tenant has as many connections as it may" },
  banned: { code: 4009, reconnect: "when-told", meaning: "the user or the address is banned for a limited time" },
  unauthorized: { code: 4101, reconnect: "never", meaning: "the token was refused" },
  tokenExpired: { code: 4102, reconnect: "with-new-token", meaning: "the token has expired" },
  badFrame: { code: 4103, reconnect: "never", meaning: "a frame was invalid or out of order" },
  frameTooLarge: { code: 4104, reconnect: "never", meaning: "a frame exceeded the size limit given in WELCOME" },
  versionUnsupported: { code: 4105, reconnect: "never", meaning: "the gateway does not support the client's protocol version" },
  kicked: { code: 4106, reconnect: "never", meaning: "a room administrator ended the connection" },
  /** Clients of y-websocket stop at codes from 4400 to 4499. */
  otherProtocol: {
    code: 4400,
    reconnect: "never",
    meaning: "y-websocket and Hocuspocus clients connect to Coroom's bridge, port 1234 by default, not to a gateway",
  },
} as const satisfies Record<string, CloseCode>;

export type Reconnect = "now" | "after-backoff" | "with-new-token" | "when-told" | "never";
export type CloseCode = { code: number; reconnect: Reconnect; meaning: string };
export type CloseName = keyof typeof CLOSE;

/** Standard codes that a browser or proxy may report. */
const STANDARD: Readonly<Record<number, Reconnect>> = {
  1008: "never", // policy violation
  1009: "never", // message too big: the same message would be refused again
};

/** Undefined: not a code of Coroom. */
export function meaningOfClose(code: number): string | undefined {
  return Object.values(CLOSE).find((close) => close.code === code)?.meaning;
}

/** What a client does after a close. Unknown codes count as a broken connection. */
export function reconnectAfterClose(code: number): Reconnect {
  const ours = Object.values(CLOSE).find((close) => close.code === code);
  return ours?.reconnect ?? STANDARD[code] ?? "after-backoff";
}
