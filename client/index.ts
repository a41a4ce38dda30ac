/**
 * Public API of the package `@coroom/client`: a room with a shared Yjs document, a room for payloads of any format, and the
 * connection that rooms may share.
 *
 * @module @coroom/client
 */

export { CoroomConnection, CoroomProvider, RoomConnection } from "./main.ts";

export type { Brand, ClientId, Epoch, Position, RoomId, Seq, UserId } from "../shared/ids.ts";
export type { Counter, JoinRefusal, Rights, RoomMode, SavingState, TentativeEdit } from "../shared/wire/frames.ts";
export type { Point, Rectangle, TextSpan } from "../shared/wire/positions.ts";
export type { ConnectionOptions } from "./connection/connection-host.ts";
export type { Token } from "./connection/token-host.ts";
export type { AwarenessState, RoomAwareness } from "./presence/awareness.ts";
export type { KnownEdit, RoomEdit } from "./room/room-messages.ts";
export type { Participant, PresenceChange } from "./presence/participants.ts";
export type { JsonOf, Presence, PresenceOf } from "./presence/presence-fields.ts";
export type { Problem, Refusal } from "./room/problems.ts";
export type { ModeFacts } from "./presence/room-presence.ts";
export type { DeviceStore } from "./persistence/device-store.ts";
export type { EditName } from "./persistence/edit-store.ts";
export type {
  CommonRoom,
  CommonRoomEvents,
  CommonRoomOptions,
  ConnectionSource,
  RoomEvents,
  RoomConnectionOptions,
  Status,
  StatusChange,
} from "./room/room-events.ts";
export type { ConnectionEvents, ConnectionStatus, Outage, SocketClose } from "./connection/connection-messages.ts";
export type { RestoredEdit } from "./room/room-messages.ts";
export type { EditFormat } from "./room/unsent.ts";
export type { ProviderEvents, ProviderOptions } from "./yjs/provider-events.ts";
