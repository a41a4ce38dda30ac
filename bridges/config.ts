/** Settings of the roles y-websocket and hocuspocus. */

import { port, positiveInteger, type Settings, SettingError, text, type Values } from "../shared/settings/settings.ts";
import { serverAddressOf } from "../client/options.ts";

export const yWebsocketSettings = {
  yHost: {
    parse: text,
    fallback: "127.0.0.1",
    meaning: "Address that the bridge for y-websocket and Hocuspocus clients listens on.",
    basic: true,
  },
  yPort: {
    parse: port,
    fallback: 1234,
    meaning: "Port of the bridge (y-websocket: ws://host:port/room?token=…, Hocuspocus: ws://host:port); 0 chooses a free port.",
    basic: true,
  },
  yGatewayUrl: {
    parse: text,
    fallback: "",
    meaning: "Gateway that the bridge connects to (ws://host:port). Empty: the gateway of this process.",
    basic: true,
  },
  yClientsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning:
      "Maximum number of clients of the bridge: y-websocket clients, Hocuspocus sockets and their documents. Further clients get HTTP 503.",
  },
  yDocumentsMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Maximum number of documents on one socket of a Hocuspocus client. Further documents are refused.",
  },
  yClientsPerAddressMax: {
    parse: positiveInteger,
    fallback: 200,
    meaning:
      "Maximum number of clients of the bridge per IP address (see COROOM_CLIENT_ADDRESS_HEADER) whose token is not accepted yet. Further clients get HTTP 429. More than COROOM_Y_DOCUMENTS_MAX, because a Hocuspocus socket counts with each of its documents.",
  },
  yHelloMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning:
      "Milliseconds for a new client of the bridge to send its request, and then its first message, and for a Hocuspocus socket without a document to open one.",
  },
  yRoomBytesMax: {
    parse: positiveInteger,
    fallback: 256 * 1024 ** 2,
    meaning: "Maximum bytes of one room's content. Beyond it the clients of the room are closed and may reconnect.",
  },
  yMessageBytesMax: {
    parse: positiveInteger,
    fallback: 32 * 1024 ** 2,
    meaning: "Maximum bytes of one message of a client of the bridge.",
  },
  yHeldBytesMax: {
    parse: positiveInteger,
    fallback: 128 * 1024 ** 2,
    meaning:
      "Maximum bytes received from all clients of the bridge before their rooms are joined. The sender beyond it is closed and may reconnect.",
  },
  yUnfinishedBytesMax: {
    parse: positiveInteger,
    fallback: 256 * 1024 ** 2,
    meaning:
      "Maximum bytes of unfinished messages of all connections of the bridge together. Beyond it the oldest is cut and its client may reconnect. The value must be at least COROOM_Y_HELD_BYTES_MAX and COROOM_Y_MESSAGE_BYTES_MAX together.",
  },
  yWaitingBytesMax: {
    parse: positiveInteger,
    fallback: 32 * 1024 ** 2,
    meaning: "Maximum unread bytes of one client of the bridge. Beyond it the client is closed and may reconnect.",
  },
  yUnreadBytesMax: {
    parse: positiveInteger,
    fallback: 320 * 1024 ** 2,
    meaning:
      "Maximum unread bytes of all clients of the bridge together. Beyond it a client of the user with the most is cut and may reconnect; beyond half of it, long answers wait until others have been read. The value must be at least COROOM_Y_ROOM_BYTES_MAX.",
  },
  yAnswerBytesBurst: {
    parse: positiveInteger,
    fallback: 8 * 1024 ** 2,
    meaning: "Bytes of answers (document state, awareness) that one client of the bridge may request at once. Further answers are delayed.",
  },
  yAnswerBytesPerSecond: {
    parse: positiveInteger,
    fallback: 256 * 1024,
    meaning: "Sustained bytes of answers per second and client of the bridge.",
  },
  yUpdateBytesBurst: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning: "Bytes of updates that one client of the bridge may send at once. Beyond it the client is closed and may reconnect.",
  },
  yUpdateBytesPerSecond: {
    parse: positiveInteger,
    fallback: 6 * 1024 ** 2,
    meaning: "Sustained bytes of updates per second and client of the bridge.",
  },
  ySaveMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds that the edits of a disconnected client of the bridge may take to be saved.",
  },
} as const satisfies Settings;

export type YWebsocketConfig = Values<typeof yWebsocketSettings>;

/** The same settings as gateways have. */
export type EdgeConfig = { readonly production: boolean; readonly allowedOrigins: readonly string[]; readonly clientAddressHeader: string };

/** Throws `SettingError` if the settings are unsafe or do not name a gateway. */
export function refuseUnsafe({ yGatewayUrl, production, allowedOrigins, ...config }: YWebsocketConfig & EdgeConfig): void {
  if (config.yUnfinishedBytesMax < config.yHeldBytesMax + config.yMessageBytesMax) {
    throw new SettingError(
      "COROOM_Y_UNFINISHED_BYTES_MAX must be at least COROOM_Y_HELD_BYTES_MAX and COROOM_Y_MESSAGE_BYTES_MAX together: otherwise clients without a valid token could end messages of others",
    );
  }
  if (config.yUnreadBytesMax < config.yRoomBytesMax) {
    throw new SettingError(
      "COROOM_Y_UNREAD_BYTES_MAX must be at least COROOM_Y_ROOM_BYTES_MAX: otherwise no client could open the largest room",
    );
  }
  if (production && allowedOrigins.length === 0) {
    throw new SettingError("cannot allow all origins in production. Set COROOM_ALLOWED_ORIGINS to the origins of your pages.");
  }
  try {
    serverAddressOf(yGatewayUrl);
  } catch {
    throw new SettingError(`COROOM_Y_GATEWAY_URL must name a gateway, as ws://host:port or wss://host, not ${JSON.stringify(yGatewayUrl)}`);
  }
}

/** Warning for the operator, or undefined. Behind a load balancer all clients have its address, unless a header carries the real one. */
export function addressWarning({ production, clientAddressHeader }: EdgeConfig): string | undefined {
  if (!production || clientAddressHeader !== "") return undefined;
  return "COROOM_CLIENT_ADDRESS_HEADER is not set: gateways see all y-websocket clients at this machine's address, so address limits and bans apply to all of them or none. The bridge counts them under the load balancer's address. Set the header that your load balancer adds.";
}
