/**
 * All WebSocket close codes of a gateway. The code alone determines what the client does next. A number is never
 * reused. WIRE.md has the same list, which a test compares.
 *
 * - `now`: connect again at once, to another gateway if possible.
 * - `after-backoff`: connect again after exponential backoff with jitter.
 * - `with-new-token`: ask the application for a new token, then connect again.
 * - `after-delay`: connect again when the time given by RETRY_LATER is over, however long it is.
 * - `never`: stop and inform the application, because another attempt would end the same way.
 */
export const CLOSE = {
  goingAway: { code: 4001, reconnect: "now" },
  tooSlow: { code: 4002, reconnect: "after-backoff" },
  degraded: { code: 4003, reconnect: "now" },
  silent: { code: 4004, reconnect: "after-backoff" },
  overloaded: { code: 4005, reconnect: "after-backoff" },
  rateLimited: { code: 4006, reconnect: "after-backoff" },
  helloTimeout: { code: 4007, reconnect: "after-backoff" },
  tenantFull: { code: 4008, reconnect: "after-backoff" },
  banned: { code: 4009, reconnect: "after-delay" },
  unauthorized: { code: 4101, reconnect: "never" },
  tokenExpired: { code: 4102, reconnect: "with-new-token" },
  badFrame: { code: 4103, reconnect: "never" },
  frameTooLarge: { code: 4104, reconnect: "never" },
  versionUnsupported: { code: 4105, reconnect: "never" },
  kicked: { code: 4106, reconnect: "never" },
  /** Clients of y-websocket stop at codes from 4400 to 4499. */
  otherProtocol: { code: 4400, reconnect: "never" },
} as const satisfies Record<string, CloseCode>;

type Reconnect = "now" | "after-backoff" | "with-new-token" | "after-delay" | "never";
type CloseCode = { code: number; reconnect: Reconnect };
export type CloseName = keyof typeof CLOSE;

/** The reason that the gateway sends with the code. Clients show it and do not contain it. */
export const CLOSE_MEANINGS: Readonly<Record<CloseName, string>> = {
  goingAway: "the gateway is draining",
  tooSlow: "the client fell too far behind; resume from the last seq",
  degraded: "the gateway lost its backbone; another may have it",
  silent: "the client sent nothing for too long",
  overloaded: "the gateway accepts no more connections now",
  rateLimited: "the client exceeded its rate limits",
  helloTimeout: "no HELLO arrived in time",
  tenantFull: "the tenant or the user has as many connections as allowed",
  banned: "the user or the address is banned for a limited time",
  unauthorized: "the token was refused",
  tokenExpired: "the token has expired",
  badFrame: "a frame was invalid or out of order",
  frameTooLarge: "a frame exceeded the size limit given in WELCOME",
  versionUnsupported: "the gateway does not support the client's protocol version",
  kicked: "a room administrator ended the connection",
  otherProtocol: "y-websocket and Hocuspocus clients connect to Coroom's bridge, port 1234 by default, not to a gateway",
};

/** Whether a gateway sent the code. */
export function isGatewayClose(code: number): boolean {
  return Object.values(CLOSE).some((close) => close.code === code);
}

/**
 * The client's action after a close. Unknown codes count as a broken connection, also 1008 and 1009: a gateway never sends
 * them, so a proxy did, and its reason may end.
 */
export function reconnectAfterClose(code: number): Reconnect {
  const ours = Object.values(CLOSE).find((close) => close.code === code);
  return ours?.reconnect ?? "after-backoff";
}
