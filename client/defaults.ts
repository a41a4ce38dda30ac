/** The client's constants. The server's limits are in WELCOME. */

import type { TenantPollOptions } from "./boards/tenant-polls.ts";
import type { ConnectionLifecycleOptions } from "./connection/connection-lifecycle.ts";
import type { OutboxOptions } from "./room/outbox.ts";
import type { PresenceSessionOptions } from "./presence/room-presence.ts";
import type { RoomSessionOptions } from "./room/room-session.ts";
import type { TentativeOptions } from "./room/tentative-edits.ts";
import type { InboxOptions } from "./room/incoming-edits.ts";

/** Longest wait for the application's token function. */
export const TOKEN_MS_MAX = 30_000;

export const CONNECTION: Omit<ConnectionLifecycleOptions, "agent" | "tokenIsFixed"> = {
  tokenMsMax: TOKEN_MS_MAX,
  renewShare: 0.8,
  renewMsMin: 3_000,
  openMsMax: 10_000,
  unansweredMsMax: 10_000,
  checkMsMax: 5_000,
  retryMsMax: 300_000,
  banMsMax: 86_400_000,
  healthyAfterMs: 5_000,
  quickRetryMs: 500,
  backoff: { baseMs: 500, maxMs: 15_000, jitterMs: 5_000 },
  lostBackoff: { baseMs: 500, maxMs: 1_000, jitterMs: 3_000 },
  lostMsMax: 60_000,
};

export const OUTBOX: Omit<OutboxOptions, "format" | "mergeUnsent"> = {
  unsentBytesMax: 64 * 1024 ** 2,
  inFlightEditsMax: 400,
  inFlightBytesMax: 2 * 1024 ** 2,
  silenceMsMax: 10_000,
};

const INBOX: InboxOptions = { heldBytesMax: 8 * 1024 ** 2, replayMsMax: 2_000, replaysMax: 4 };

const TENTATIVE: TentativeOptions = {
  editsMax: 1_000,
  bytesMax: 8 * 1024 ** 2,
  authorsMax: 2_000,
  resubmitAfterMs: 5_000,
  resubmitJitterMs: 5_000,
  resubmitsMax: 3,
  resubmitsAtOnceMax: 50,
};

export const ROOM: Omit<RoomSessionOptions, "outbox"> = {
  feed: { inbox: INBOX, tentative: TENTATIVE, gapPatienceMs: 2_000 },
  resyncBackoff: { baseMs: 500, maxMs: 15_000, jitterMs: 1_000 },
  joinMsMax: 15_000,
  joinJitterMs: 1_000,
  dedupeMs: 300_000,
};

export const PRESENCE: PresenceSessionOptions = {
  own: { bytesMax: 4_096, fieldsMax: 64, perSecond: 20, viewportsPerSecond: 5 },
  remembersMs: 3_000,
};

export const TENANT_BOARD: Omit<TenantPollOptions, "tokenIsFixed"> = {
  intervalMs: 10_000,
  intervalMsMin: 1_000,
  intervalMsMax: 600_000,
  retryMsMin: 2_000,
  retryMsMax: 60_000,
  networkBackMs: 500,
};
