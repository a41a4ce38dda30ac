/** What the package offers. */

export { CoroomConnection, CoroomProvider, RoomConnection } from "./main.ts";

export type { ClientId, Epoch, Position, Seq, UserId } from "../shared/ids.ts";
export type { Rights, RoomMode, SavingState, TentativeEdit } from "../shared/wire/frames.ts";
export type { BoardRole, BoardWindow } from "../shared/wire/boards.ts";
export type { Point, Rectangle, Span } from "../shared/wire/positions.ts";
export type { ConnectionEvents, ConnectionHostOptions as ConnectionOptions, Token } from "./connection-host.ts";
export type { RoomAwareness } from "./awareness.ts";
export type { RoomEdit } from "./inbox.ts";
export type { Board, BoardEvents, BoardOptions, Leaderboard, RankedUser } from "./leaderboard.ts";
export type { Participant, PresenceChange } from "./participants.ts";
export type { Presence } from "./presence-fields.ts";
export type { Problem, Refusal } from "./problems.ts";
export type { ModeFacts } from "./room-presence.ts";
export type { DocumentChange, EditName, EditStore, KeptChange, KeptDocument, KeptEdit, KeptRoom, RoomStore, SentAs, StoredRoom } from "./edit-store.ts";
export type { RoomEvents, RoomHostOptions as RoomConnectionOptions, Status } from "./room-events.ts";
export type { RestoredEdit } from "./room-messages.ts";
export type { EditFormat } from "./unsent.ts";
export type { ProviderEvents, ProviderOptions } from "./yjs-provider.ts";
