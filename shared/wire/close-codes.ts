/**
 * Every WebSocket close code that a gateway sends. The code carries what the client does next, so that
 * a client never has to read a text. A number is never reused. WIRE.md lists the same; a test compares.
 *
 * now             connect again at once, elsewhere if it can
 * after-backoff   connect again after exponential backoff with jitter
 * with-new-token  ask the application for a new token, then connect again
 * when-told       connect again when the time that RETRY_LATER told is over, however long it is
 * never           stop and tell the application: trying again would end the same way
 */
export const CLOSE = {
  goingAway: { code: 4001, reconnect: "now", meaning: "the gateway is draining" },
  tooSlow: { code: 4002, reconnect: "after-backoff", meaning: "the client fell too far behind; resume from the last seq" },
  degraded: { code: 4003, reconnect: "now", meaning: "the gateway lost its backbone; another may have it" },
  silent: { code: 4004, reconnect: "after-backoff", meaning: "nothing was heard from the client for too long" },
  overloaded: { code: 4005, reconnect: "after-backoff", meaning: "the gateway takes no more connections now" },
  rateLimited: { code: 4006, reconnect: "after-backoff", meaning: "the client sent faster than its limits allow" },
  helloTimeout: { code: 4007, reconnect: "after-backoff", meaning: "no hello came in time" },
  tenantFull: { code: 4008, reconnect: "after-backoff", meaning: "the tenant has as many connections as it may" },
  banned: { code: 4009, reconnect: "when-told", meaning: "the user or the address is banned for a time" },
  unauthorized: { code: 4101, reconnect: "never", meaning: "the token was refused" },
  tokenExpired: { code: 4102, reconnect: "with-new-token", meaning: "the token has expired" },
  badFrame: { code: 4103, reconnect: "never", meaning: "a frame did not decode or came out of turn" },
  frameTooLarge: { code: 4104, reconnect: "never", meaning: "a frame was over the size limit told in WELCOME" },
  versionUnsupported: { code: 4105, reconnect: "never", meaning: "the client's protocol version is not served here" },
  kicked: { code: 4106, reconnect: "never", meaning: "whoever runs the room ended the connection" },
} as const satisfies Record<string, CloseCode>;

export type Reconnect = "now" | "after-backoff" | "with-new-token" | "when-told" | "never";
export type CloseCode = { code: number; reconnect: Reconnect; meaning: string };
export type CloseName = keyof typeof CLOSE;

/** Standard codes a browser or proxy may report instead of one of ours. */
const STANDARD: Readonly<Record<number, Reconnect>> = {
  1008: "never", // policy violation
  1009: "never", // message too big: the same message would be refused again
};

/** Undefined: not one of ours. */
export function meaningOfClose(code: number): string | undefined {
  return Object.values(CLOSE).find((close) => close.code === code)?.meaning;
}

/** What a client does after a close; unknown codes are taken as a broken line. */
export function reconnectAfterClose(code: number): Reconnect {
  const ours = Object.values(CLOSE).find((close) => close.code === code);
  return ours?.reconnect ?? STANDARD[code] ?? "after-backoff";
}
