import { expect, test } from "vitest";

import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Epoch, RoomKey, Seq } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { webhookEndpoints } from "../../shared/settings/webhook-endpoints.ts";
import { ChangeQueueHost } from "./change-queue-host.ts";

const ROOM = "acme.notes" as RoomKey;
const QUIET_MS = 1_000;

/** A queue that answers when the test decides, and the events that it has. */
class QueueRig {
  readonly clock = new FakeClock();
  readonly queued: Partial<WebhookEvent>[] = [];
  /** Adds that wait for their answer, the oldest first. */
  readonly #adding: { readonly succeed: () => void; readonly fail: () => void }[] = [];
  readonly queue: ChangeQueueHost;

  constructor() {
    const add = (_: string, event: WebhookEvent) =>
      new Promise<void>((resolve, reject) => {
        const succeed = () => (this.queued.push(event), resolve());
        this.#adding.push({ succeed, fail: () => reject(new Error("NATS is away")) });
      });
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    this.queue = new ChangeQueueHost(
      { add },
      { webhookUrls: webhookEndpoints("https://a.example/"), webhookQuietMs: QUIET_MS, webhookChangeMsMax: 60_000 },
      { clock: this.clock, log },
    );
  }

  edit(seq: number): void {
    this.queue.receiveEdits(ROOM, { epoch: 1 as Epoch, seq: seq as Seq }, 1);
  }

  get adding(): number {
    return this.#adding.length;
  }

  async answer(how: "succeed" | "fail"): Promise<void> {
    this.#adding.shift()?.[how]();
    await this.clock.advance(0);
  }

  /** Asks as a save does, which may write the checkpoint once the answer is there. */
  settle(): { outcome: "waits" | "settled" | "failed" } {
    const asked: { outcome: "waits" | "settled" | "failed" } = { outcome: "waits" };
    this.queue.queuePending(ROOM).then(
      () => (asked.outcome = "settled"),
      () => (asked.outcome = "failed"),
    );
    return asked;
  }
}

test("[NWH1] a change that waited for another one and could not be queued is queued when the save tries again", async () => {
  const rig = new QueueRig();
  rig.edit(1);
  await rig.clock.advance(2 * QUIET_MS);
  rig.edit(2);
  const save = rig.settle();
  await rig.answer("succeed");
  await rig.answer("fail");
  expect(save.outcome).toBe("failed");

  const again = rig.settle();
  await rig.answer("succeed");
  expect(again.outcome).toBe("settled");
  expect(rig.queued).toMatchObject([
    { seq: 1, edits: 1 },
    { seq: 2, edits: 1 },
  ]);
});

test("[NWH2] a save waits for a change that is on its way into the queue, and queues it itself if that fails", async () => {
  const rig = new QueueRig();
  rig.edit(1);
  await rig.clock.advance(2 * QUIET_MS);
  const save = rig.settle();
  await rig.clock.advance(0);
  expect([rig.adding, save.outcome]).toEqual([1, "waits"]);
  await rig.answer("fail");
  expect([rig.adding, save.outcome]).toEqual([1, "waits"]);
  await rig.answer("succeed");
  expect([rig.queued.length, save.outcome]).toEqual([1, "settled"]);
});

test("[NWH3] changes that arrive while the queue does not answer are queued as one, and not immediately after a failure", async () => {
  const rig = new QueueRig();
  for (let seq = 1; seq <= 10; seq++) {
    rig.edit(seq);
    await rig.clock.advance(2 * QUIET_MS);
  }
  expect(rig.adding).toBe(1);
  await rig.answer("fail");
  expect(rig.adding).toBe(0);
  await rig.clock.advance(2 * QUIET_MS);
  await rig.answer("succeed");
  await rig.clock.advance(2 * QUIET_MS);
  expect([rig.adding, rig.queued.length]).toEqual([0, 1]);
  expect(rig.queued).toMatchObject([{ seq: 10, edits: 10 }]);
});
