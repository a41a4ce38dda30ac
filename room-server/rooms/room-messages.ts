/** Inputs and effects of one owned room. */

import type { OwnerReply, FromGateway, OwnerAnnouncement } from "../../shared/bus/envelope.ts";
import type { Epoch, GatewayId, Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { OutgoingRecord } from "../ports.ts";
import type { CatchUpRequest } from "./catch-ups.ts";

export type OwnedRoomInput =
  | FromGateway
  | { kind: "appended"; streamSeq: number }
  /** The storage of the log is full, so the append in flight waits for space. */
  | { kind: "log-full" }
  | { kind: "inhabited" }
  /** Time for which edits are collected before they share a record; 0 to send at once. */
  | { kind: "gather"; everyMs: number }
  | { kind: "tick" };

export type OwnedRoomEffect =
  | { kind: "append"; record: OutgoingRecord; edits: number }
  | { kind: "answer"; gateway: GatewayId; answer: OwnerReply }
  | { kind: "broadcast"; message: OwnerAnnouncement }
  | { kind: "saving-changed"; state: SavingState }
  /** The range is not in memory: answer the request from the log. */
  | { kind: "read-log"; request: CatchUpRequest; epoch: Epoch; head: Seq; streamSeq: number }
  /**
   * A gateway knows a later owner. Without a request: check before the next append that the log still ends with this
   * room's last record.
   */
  | { kind: "check-ownership"; request: CatchUpRequest | undefined }
  /** A limit was reached, which is counted. */
  | { kind: "limit-reached"; limit: RoomLimit };

type RoomLimit = "unacked-edits" | "held-messages" | "deferred-catch-ups" | "dedupe-writers" | "log-reads" | "epochs";
