/** Settings of the role y-websocket. */

import { addressOf } from "../client/connection/address.ts";
import type { Log } from "../shared/log.ts";
import { port, positiveInteger, type Settings, SettingError, text, type Values } from "../shared/config.ts";

export const yWebsocketSettings = {
  yHost: { parse: text, fallback: "127.0.0.1", meaning: "address that clients of y-websocket connect to" },
  yPort: {
    parse: port,
    fallback: 1234,
    meaning: "port that clients of y-websocket connect to, as ws://host:port/room?token=…; 0: any free one",
  },
  yGatewayUrl: {
    parse: text,
    fallback: "",
    meaning: "the gateways, as clients reach them (ws://host:port): rooms are entered there; empty: the gateway of this process",
  },
  yClientsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "clients of y-websocket; each costs a document in memory. More are turned away with HTTP 503",
  },
  yClientsPerAddressMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "clients of y-websocket from one address, as COROOM_CLIENT_ADDRESS_HEADER tells it; more are turned away with HTTP 429",
  },
  yHelloMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "time a new client has to say something; then it is closed and comes again",
  },
  yMessageBytesMax: { parse: positiveInteger, fallback: 32 * 1024 ** 2, meaning: "bytes of one message of a client" },
  yHeldBytesMax: {
    parse: positiveInteger,
    fallback: 128 * 1024 ** 2,
    meaning:
      "bytes of all that clients say before their rooms are there, together, messages that are not whole yet among them, and 256 for each that is; over it, who says more is closed and comes again",
  },
  yWaitingBytesMax: {
    parse: positiveInteger,
    fallback: 32 * 1024 ** 2,
    meaning: "bytes that a client has not taken yet; over it, it is closed and comes again",
  },
  yAnswerBytesBurst: {
    parse: positiveInteger,
    fallback: 8 * 1024 ** 2,
    meaning:
      "bytes of answers to one client's questions (what it lacks of the document, what others show) at once; what it asks past that is answered later",
  },
  yAnswerBytesPerSecond: { parse: positiveInteger, fallback: 256 * 1024, meaning: "and in a second from then on" },
  yUpdateBytesBurst: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning:
      "bytes of updates of one client at once, those of what still waits for others counted each time; who writes more is closed and comes again",
  },
  yUpdateBytesPerSecond: { parse: positiveInteger, fallback: 6 * 1024 ** 2, meaning: "and in a second from then on" },
  ySaveMsMax: { parse: positiveInteger, fallback: 10_000, meaning: "how long what a client wrote that is gone may take to be saved" },
} as const satisfies Settings;

export type YWebsocketConfig = Values<typeof yWebsocketSettings>;

/** As gateways have them. */
export type EdgeConfig = { readonly production: boolean; readonly allowedOrigins: readonly string[]; readonly clientAddressHeader: string };

/** Throws where it may not, or cannot, be started so. */
export function refuseUnsafe({ yGatewayUrl, production, allowedOrigins }: YWebsocketConfig & EdgeConfig): void {
  if (production && allowedOrigins.length === 0) {
    throw new SettingError("in production the pages that may connect must be named: set COROOM_ALLOWED_ORIGINS");
  }
  try {
    addressOf(yGatewayUrl);
  } catch {
    throw new SettingError(`COROOM_Y_GATEWAY_URL must name a gateway, as ws://host:port or wss://host, not ${JSON.stringify(yGatewayUrl)}`);
  }
}

/** Behind a balancer all clients come from its address, unless a header says where from. */
export function warnOfOneAddress({ production, clientAddressHeader }: EdgeConfig, log: Pick<Log, "warn">): void {
  if (!production || clientAddressHeader !== "") return;
  log.warn(
    {},
    "COROOM_CLIENT_ADDRESS_HEADER is not set: gateways take all clients of y-websocket to come from this machine, and count or ban them together or not at all; here they count under the balancer's address",
  );
}
