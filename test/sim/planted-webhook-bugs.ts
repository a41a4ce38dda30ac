/** Bugs in webhooks that the simulator must find: see `planted-bugs.ts`. */

import type { Seq } from "../../shared/ids.ts";
import type { Fault } from "./faults.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { ENDPOINTS } from "./sim-webhooks.ts";
import type { Size } from "./sizes.ts";

/** Its only effect is that the run has webhooks. */
const WITH_WEBHOOKS: Fault = { kind: "webhook endpoint failing", atMs: 0, forMs: 1, whom: 0, how: 0 };

/** A checkpoint covers edits whose change is not in the queue yet, so a killed service never announces them. */
const coveredBeforeQueued: PlantedBug = {
  name: "checkpoint covers a change that is not queued",
  notifications: (notifications) => ({
    receiveEdits: (...of) => notifications.receiveEdits(...of),
    receiveSnapshot: (...of) => notifications.receiveSnapshot(...of),
    receiveDeleted: (room) => notifications.receiveDeleted(room),
    queuePending: () => Promise.resolve(),
  }),
  faults: ({ faultyMs }: Size) => [
    WITH_WEBHOOKS,
    ...[0.5, 0.7, 0.9, 0.99].map((share): Fault => ({
      kind: "document service killed",
      atMs: Math.floor(share * faultyMs),
      forMs: 100,
      whom: share,
      how: 0,
    })),
  ],
};

/** An endpoint learns of an edit that it cannot read yet. */
const announcedTooEarly: PlantedBug = {
  name: "change announced before the log has it",
  notifications: (notifications) => ({
    receiveEdits: (room, { epoch, seq }, edits) => notifications.receiveEdits(room, { epoch, seq: (seq + 1) as Seq }, edits),
    receiveSnapshot: (...of) => notifications.receiveSnapshot(...of),
    receiveDeleted: (room) => notifications.receiveDeleted(room),
    queuePending: (room) => notifications.queuePending(room),
  }),
  faults: () => [WITH_WEBHOOKS],
};

/** Events go to the endpoints before they are queued, so an endpoint that is broken holds up the checkpoints of all rooms. */
const savesWaitForEndpoints: PlantedBug = {
  name: "saves wait for the endpoints of webhooks",
  webhookQueue: (queue, calls) => ({
    ...queue,
    add: async (id, event) => {
      for (const endpoint of ENDPOINTS)
        if ((await calls.deliver(endpoint, id, event)).kind !== "delivered") throw new Error("the endpoint did not answer");
      return queue.add(id, event);
    },
  }),
  faults: () => [WITH_WEBHOOKS],
};

/** An event is removed from the queue after its first attempt. */
const failedNotRepeated: PlantedBug = {
  name: "failed webhook not repeated",
  webhookQueue: (queue) => ({
    ...queue,
    take: async function* (endpoint, most, signal) {
      for await (const queued of queue.take(endpoint, most, signal)) yield { ...queued, settle: () => queued.settle({ kind: "done" }) };
    },
  }),
  faults: ({ faultyMs }: Size) => [{ ...WITH_WEBHOOKS, forMs: faultyMs }],
};

/** Bugs that show only in runs with webhooks. */
export const PLANTED_WEBHOOK_BUGS: readonly PlantedBug[] = [
  coveredBeforeQueued,
  announcedTooEarly,
  savesWaitForEndpoints,
  failedNotRepeated,
];
