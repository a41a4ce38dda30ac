/**
 * Reads new operations events while a console requests them, and keeps the newest. One reader of the stream serves
 * every console of this gateway. Without a console there is no reader. The events of a reader that failed are kept until
 * the next one reads the stream, so that an outage of NATS does not empty a console.
 */

import type { Subjects } from "../../../shared/bus/subjects.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import { watchNumbered } from "../../../shared/io/nats-operations.ts";
import type { Log } from "../../../shared/process/log.ts";
import { RecentEventLog } from "../../operations/events-kept.ts";
import type { RecentEvents } from "../../ports.ts";

/** Limits for takeovers, and for all other events. */
const KEPT = { eventsMax: 500, takeoversMax: 500 } as const;
/** Time without a request after which the console counts as closed. */
const UNASKED_MS_MAX = 60_000;
/** Maximum wait for the stored events. */
const FIRST_MS_MAX = 2_000;

type Following = { readonly ready: Promise<void>; readonly end: () => void };

/** Reads as many events as the stream keeps (`opsEventsMax`), so that takeovers are counted completely. */
export function natsEvents(
  nats: NatsConnection,
  subjects: Subjects,
  { opsEventsMax }: { opsEventsMax: number },
  { clock, log }: { clock: Clock; log: Log },
): RecentEvents {
  let kept = new RecentEventLog(KEPT);
  let following: Following | undefined;
  let cancelEnd = (): void => {};
  void nats.closed().then(() => cancelEnd());

  const follow = (): Following => {
    const ended = new AbortController();
    let receiveReady = (): void => {};
    const ready = new Promise<void>((resolve) => (receiveReady = resolve));
    const cancelWait = clock.after(FIRST_MS_MAX, receiveReady);
    const started: Following = { ready, end: () => ended.abort() };
    const read = async (): Promise<void> => {
      let newest = 0;
      const begun = (seq: number): void => {
        newest = seq;
        if (seq !== 0) return;
        kept = new RecentEventLog(KEPT); // No event replaces those that the stream had before.
        receiveReady();
      };
      for await (const { seq, event } of watchNumbered(nats, subjects, opsEventsMax, ended.signal, begun)) {
        kept.receiveEvent(seq, event);
        if (seq >= newest) receiveReady();
      }
    };
    const finish = (cause?: unknown): void => {
      cancelWait();
      receiveReady();
      if (following === started) following = undefined; // The next request starts a new reader.
      if (cause !== undefined && !nats.isClosed() && !nats.isDraining())
        log.warn({ cause }, "operations' events are not followed any more; they are again when somebody asks");
    };
    read().then(() => finish(), finish); // Whether it succeeds or fails.
    return started;
  };

  return {
    read: async () => {
      following ??= follow();
      const current = following;
      cancelEnd();
      cancelEnd = clock.after(UNASKED_MS_MAX, () => current.end());
      await current.ready;
      return kept;
    },
  };
}
