/**
 * Public API of the package `@coroom/react`: hooks for rooms. The directive makes it importable from server components of
 * Next.js.
 *
 * @module @coroom/react
 */
"use client";

export { CoroomProvider, type CoroomProviderProps } from "./coroom-provider.ts";
export {
  type PresenceToSet,
  type ParticipantWith,
  type RoomPresenceView,
  type RoomStatusView,
  type SavedView,
  useParticipants,
  usePresence,
  useRoom,
  useSaved,
  useStatus,
} from "./hooks.ts";
export { type HistoryVersion, type HistoryView, useHistory } from "./use-history.ts";
export { type BoardView, type BoardViewOptions, useLeaderboard } from "./use-leaderboard.ts";
export { type TenantBoardView, type TenantBoardViewOptions, useTenantBoard } from "./use-tenant-board.ts";
export type { OpenRoom } from "./used-rooms.ts";
