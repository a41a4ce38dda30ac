/**
 * Boards over core NATS: a gateway subscribes to a room's boards while one of its connections watches them. Also stores
 * activities that are worth points.
 */

import { errors, headers, type Subscription } from "nats";
import { z } from "zod";

import { BoardUpdate } from "../../../shared/bus/board-messages.ts";
import { encodeJson, decodeJson } from "../../../shared/bus/json-messages.ts";
import { partitionOf, type Subjects } from "../../../shared/bus/subjects.ts";
import type { RoomKey } from "../../../shared/ids.ts";
import { subscribeJson } from "../../../shared/io/nats-json.ts";
import { type NatsConnection, publish } from "../../../shared/io/nats.ts";
import type { BoardBus, Activities, ActivityOutcome } from "../../ports.ts";
import type { ServiceDirectory } from "./nats-services.ts";

export type BoardListener = { receiveUpdate(update: BoardUpdate): void; receiveBackboneFound(): void };

export function natsBoards(
  nats: NatsConnection,
  subjects: Subjects,
  leaderboards: ServiceDirectory,
): { boardBus: BoardBus; start(listener: BoardListener): void } {
  const subscriptions = new Map<RoomKey, Subscription>();
  let listener: BoardListener | undefined;
  let connected = true;

  /** Sends nothing while disconnected: the NATS client would buffer it without bound. */
  const publishMessage = (subject: string, message: object): void => {
    if (connected) publish(nats, subject, encodeJson(message));
  };

  const watchConnection = async (): Promise<void> => {
    for await (const status of nats.status()) {
      if (status.type === "disconnect") connected = false;
      else if (status.type === "reconnect") {
        connected = true;
        listener?.receiveBackboneFound();
      }
    }
  };

  const boardBus: BoardBus = {
    follow: (room) => {
      subscriptions.set(
        room,
        subscribeJson(nats, subjects.boards(room), BoardUpdate, (update) => listener?.receiveUpdate(update)),
      );
    },
    unfollow: (room) => {
      subscriptions.get(room)?.unsubscribe();
      subscriptions.delete(room);
    },
    watch: (watch) => publishMessage(subjects.watchBoard, watch),
    publishNames: (names) => publishMessage(subjects.boardNames, names),
    leaderboards: () => leaderboards.urls().length,
  };
  return {
    boardBus,
    start: (given) => {
      listener = given;
      void watchConnection();
    },
  };
}

const ANSWER_MS_MAX = 3_000;
/** JetStream's error when the stream is at its limit. */
const STORE_FAILED = 10_077;

/** JetStream's answer to a publication. */
const Answer = z.object({ duplicate: z.boolean().default(false), error: z.object({ err_code: z.number() }).optional() });

/** Publishes activities to their stream. JetStream remembers the ids of the last minutes, so each is stored once. */
export function natsActivities(
  nats: NatsConnection,
  subjects: Subjects,
  { logPartitions, mayReport = () => true }: { logPartitions: number; mayReport?: () => boolean },
): Activities {
  return {
    storeActivity: async (room, activity, id) => {
      if (!mayReport()) return "unavailable"; // With another number of partitions the activity would be stored where no leaderboard counts this room.
      const named = headers();
      named.set("Nats-Msg-Id", `${room} ${id}`);
      try {
        const { data } = await nats.request(subjects.activity(partitionOf(room, logPartitions), room), encodeJson(activity), {
          headers: named,
          timeout: ANSWER_MS_MAX,
        });
        return outcomeOf(decodeJson(Answer, data));
      } catch (error) {
        // The stream does not exist yet, no answer came in time, or the connection is lost.
        if (
          error instanceof errors.RequestError ||
          error instanceof errors.TimeoutError ||
          error instanceof errors.ClosedConnectionError ||
          error instanceof errors.ConnectionError
        )
          return "unavailable";
        throw error;
      }
    },
  };
}

function outcomeOf(answer: z.infer<typeof Answer> | undefined): ActivityOutcome {
  if (answer === undefined) return "unavailable";
  if (answer.error !== undefined) return answer.error.err_code === STORE_FAILED ? "full" : "unavailable";
  return answer.duplicate ? "known" : "stored";
}
